import { type Connection, type LiveMessage, type LiveStream, openLiveStream } from "./live-stream.ts";

/** One stream for all tabs: a browser opens at most six connections to one host. */
const ports = new Map<MessagePort, readonly string[]>();
let connection: Connection = "connecting";
let stream: LiveStream | null = null;

self.addEventListener("connect", (event) => {
  // a SharedWorker's connect event is a MessageEvent with one port
  const port = (event as MessageEvent).ports[0]!;
  ports.set(port, []);
  port.addEventListener("message", ({ data }: MessageEvent<{ follow: string[] } | "bye">) => {
    if (data === "bye") ports.delete(port);
    else ports.set(port, data.follow);
    stream?.follow([...new Set([...ports.values()].flat())].sort());
  });
  port.start();
  port.postMessage({ kind: "connection", connection } satisfies LiveMessage);
  // what this tab has read before it heard of the others' stream may be old
  if (connection === "live") port.postMessage({ kind: "caught_up" } satisfies LiveMessage);
  // signed out: whoever opens the next tab may have signed in again
  if (stream === null || connection === "signed_out") stream = openLiveStream(self.location.origin, post);
});

function post(message: LiveMessage): void {
  if (message.kind === "connection") connection = message.connection;
  for (const port of ports.keys()) port.postMessage(message);
}
