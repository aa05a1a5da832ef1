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
  let bufferedBytes = 0;
  let hasEnded = false;
  let wake = (): void => undefined;
  const drainWaiters: (() => void)[] = [];
  const sink: Sink = {
    write(bytes) {
      chunks.push(bytes);
      bufferedBytes += bytes.length;
      wake();
      return bufferedBytes < highWaterMark;
    },
    get bufferedBytes() {
      return bufferedBytes;
    },
    drained: () =>
      bufferedBytes < highWaterMark ? Promise.resolve() : new Promise((resolve) => drainWaiters.push(resolve)),
    end() {
      hasEnded = true;
      wake();
    },
  };
  const subscription = hub.follow(source, after, sink, partials);
  signal?.addEventListener("abort", sink.end);
  if (signal?.aborted) sink.end();
  try {
    for (;;) {
      const batch = chunks;
      chunks = [];
      bufferedBytes = 0;
      for (const resolve of drainWaiters.splice(0)) resolve();
      yield* batch;
      if (chunks.length > 0) continue;
      if (hasEnded) return;
      await new Promise<void>((resolve) => (wake = resolve));
    }
  } finally {
    signal?.removeEventListener("abort", sink.end);
    subscription.stop();
    for (const resolve of drainWaiters.splice(0)) resolve();
  }
}
