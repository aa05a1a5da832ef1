import { useEffect, useEffectEvent, useSyncExternalStore } from "react";
import { type Connection, type LiveMessage, openLiveStream } from "./live-stream.ts";

type Listener = (message: LiveMessage) => void;

const listeners = new Set<Listener>();
const connectionListeners = new Set<() => void>();
let connection: Connection = "connecting";
let send: (message: { follow: string[] } | "disconnect") => void = () => undefined;
/** How many components in this tab follow each run. */
const followerCounts = new Map<string, number>();

/** Connects to the event stream. Call once, after signing in. */
export function connectLive(): void {
  if ("SharedWorker" in globalThis) {
    const worker = new SharedWorker(new URL("./live-worker.ts", import.meta.url), { type: "module", name: "drover" });
    worker.port.addEventListener("message", ({ data }: MessageEvent<LiveMessage>) => receive(data));
    worker.port.start();
    send = (message) => worker.port.postMessage(message);
    addEventListener("pagehide", () => send("disconnect"));
    addEventListener("pageshow", () => sendFollowed());
  } else void shareStream();
}

/** Without shared workers, the tab that holds the lock opens the stream and broadcasts it to the others. */
async function shareStream(): Promise<void> {
  const channel = new BroadcastChannel("drover.live");
  channel.addEventListener("message", ({ data }: MessageEvent<LiveMessage>) => receive(data));
  await navigator.locks.request("drover.live", async () => {
    const stream = openLiveStream(location.origin, (message) => {
      receive(message);
      channel.postMessage(message);
    });
    send = (message) => message !== "disconnect" && stream.follow(message.follow);
    sendFollowed();
    await new Promise(() => undefined);
  });
}

function receive(message: LiveMessage): void {
  if (message.kind === "connection") {
    connection = message.connection;
    for (const listener of connectionListeners) listener();
  }
  for (const listener of listeners) listener(message);
}

/** Subscribes code outside components. Returns a function that unsubscribes. */
export function listenLive(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function useLive(listener: Listener): void {
  const receiveMessage = useEffectEvent(listener);
  useEffect(() => listenLive((message) => receiveMessage(message)), []);
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (listener) => {
      connectionListeners.add(listener);
      return () => connectionListeners.delete(listener);
    },
    () => connection,
  );
}

/** Streams the run's partial text while the component is mounted. */
export function useFollow(run_id: string | null): void {
  useEffect(() => {
    if (run_id === null) return;
    followerCounts.set(run_id, (followerCounts.get(run_id) ?? 0) + 1);
    sendFollowed();
    return () => {
      const remaining = (followerCounts.get(run_id) ?? 1) - 1;
      if (remaining > 0) followerCounts.set(run_id, remaining);
      else followerCounts.delete(run_id);
      sendFollowed();
    };
  }, [run_id]);
}

function sendFollowed(): void {
  send({ follow: [...followerCounts.keys()] });
}
