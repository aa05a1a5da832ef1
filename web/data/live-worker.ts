import { type Connection, type LiveMessage, type LiveStream, openLiveStream } from "./live-stream.ts";

/** The runs that each tab follows. All tabs share one stream, because browsers open at most six connections to a host. */
const ports = new Map<MessagePort, readonly string[]>();
let connection: Connection = "connecting";
let stream: LiveStream | null = null;

self.addEventListener("connect", (event) => {
  // A SharedWorker's connect event is a MessageEvent with one port.
  const port = (event as MessageEvent).ports[0]!;
  ports.set(port, []);
  port.addEventListener("message", ({ data }: MessageEvent<{ follow: string[] } | "disconnect">) => {
    if (data === "disconnect") ports.delete(port);
    else ports.set(port, data.follow);
    stream?.follow([...new Set([...ports.values()].flat())].sort());
  });
  port.start();
  port.postMessage({ kind: "connection", connection } satisfies LiveMessage);
  // The tab may have read data before it joined the shared stream.
  if (connection === "live") port.postMessage({ kind: "caught_up" } satisfies LiveMessage);
  // After a sign-out, a new tab means that the user may have signed in again.
  if (stream === null || connection === "signed_out") stream = openLiveStream(self.location.origin, post);
});

function post(message: LiveMessage): void {
  if (message.kind === "connection") connection = message.connection;
  for (const port of ports.keys()) port.postMessage(message);
}
