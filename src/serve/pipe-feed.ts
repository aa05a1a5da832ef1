import type { Sink } from "../show/feed.ts";
import type { FeedHub } from "../show/feed-hub.ts";
import type { FeedReply } from "./reply.ts";

/** About the size of a socket's send buffer. */
const highWaterMark = 64 * 1024;

/** Reads a feed in this process. Chunks are buffered until they are consumed, with backpressure on the hub. */
export async function* pipeFeed(
  hub: FeedHub,
  { source, after, partials }: FeedReply,
  signal: AbortSignal | undefined,
): AsyncGenerator<Uint8Array> {
  let chunks: Uint8Array[] = [];
  let waiting = 0;
  let ended = false;
  let wake = (): void => undefined;
  const drained: (() => void)[] = [];
  const sink: Sink = {
    write(bytes) {
      chunks.push(bytes);
      waiting += bytes.length;
      wake();
      return waiting < highWaterMark;
    },
    get bufferedBytes() {
      return waiting;
    },
    drained: () => (waiting < highWaterMark ? Promise.resolve() : new Promise((resolve) => drained.push(resolve))),
    end() {
      ended = true;
      wake();
    },
  };
  const following = hub.follow(source, after, sink, partials);
  signal?.addEventListener("abort", sink.end);
  if (signal?.aborted) sink.end();
  try {
    for (;;) {
      const batch = chunks;
      chunks = [];
      waiting = 0;
      for (const resolve of drained.splice(0)) resolve();
      yield* batch;
      if (chunks.length > 0) continue;
      if (ended) return;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    signal?.removeEventListener("abort", sink.end);
    following.stop();
    for (const resolve of drained.splice(0)) resolve();
  }
}
