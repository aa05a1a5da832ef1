import { useEffect, useEffectEvent, useSyncExternalStore } from "react";
import { type Connection, type LiveMessage, openLiveStream } from "./live-stream.ts";

type Listener = (message: LiveMessage) => void;

const listeners = new Set<Listener>();
const watchers = new Set<() => void>();
let connection: Connection = "connecting";
let send: (message: { follow: string[] } | "bye") => void = () => undefined;
/** How many parts of this tab follow each run. */
const followed = new Map<string, number>();

/** Called once, after signing in. */
export function connectLive(): void {
  if ("SharedWorker" in globalThis) {
    const worker = new SharedWorker(new URL("./live-worker.ts", import.meta.url), { type: "module", name: "drover" });
    worker.port.addEventListener("message", ({ data }: MessageEvent<LiveMessage>) => receive(data));
    worker.port.start();
    send = (message) => worker.port.postMessage(message);
    addEventListener("pagehide", () => send("bye"));
    addEventListener("pageshow", () => tellFollowed());
  } else void leadOrListen();
}

/** Where there are no shared workers, the tab that holds the lock has the stream and tells the others. */
async function leadOrListen(): Promise<void> {
  const channel = new BroadcastChannel("drover.live");
  channel.addEventListener("message", ({ data }: MessageEvent<LiveMessage>) => receive(data));
  await navigator.locks.request("drover.live", async () => {
    const stream = openLiveStream(location.origin, (message) => {
      receive(message);
      channel.postMessage(message);
    });
    send = (message) => message !== "bye" && stream.follow(message.follow);
    tellFollowed();
    await new Promise(() => undefined);
  });
}

function receive(message: LiveMessage): void {
  if (message.kind === "connection") {
    connection = message.connection;
    for (const watcher of watchers) watcher();
  }
  for (const listener of listeners) listener(message);
}

/** Outside of components. Returns what ends it. */
export function listenLive(listener: Listener): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function useLive(listener: Listener): void {
  const heard = useEffectEvent(listener);
  useEffect(() => listenLive((message) => heard(message)), []);
}

export function useConnection(): Connection {
  return useSyncExternalStore(
    (watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
    () => connection,
  );
}

/** While mounted, text of this run is sent as it is being said. */
export function useFollow(run_id: string | null): void {
  useEffect(() => {
    if (run_id === null) return;
    followed.set(run_id, (followed.get(run_id) ?? 0) + 1);
    tellFollowed();
    return () => {
      const left = (followed.get(run_id) ?? 1) - 1;
      if (left > 0) followed.set(run_id, left);
      else followed.delete(run_id);
      tellFollowed();
    };
  }, [run_id]);
}

function tellFollowed(): void {
  send({ follow: [...followed.keys()] });
}
