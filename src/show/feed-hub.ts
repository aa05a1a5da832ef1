import { type Batch, createFeed, type Feed, type FeedSource, type Sink } from "./feed.ts";
import { createPageCache } from "./page-cache.ts";
import { createTurnQueue } from "./turn-queue.ts";

export interface FeedHub {
  /** Sends all events after `after` to the sink, then new ones as they arrive, until the feed ends or `stop` is called. */
  follow(source: FeedSource, after: number, sink: Sink, partials?: FollowedPartials): { stop(): void };
  /** Changes the runs whose partial output a named stream gets. Returns false if this process has no stream of that name. */
  setPartials(name: string, runs: readonly string[]): boolean;
  /** Wakes the followers of runs that have new events. null means that any run may have some. */
  announce(run_ids: Iterable<string> | null): void;
  /** Sends a message to the followers of a run that are up to date. It is not stored. */
  sendLive(run_id: string, message: string): void;
  readonly followers: number;
  /** Ends every stream. Idempotent. */
  stop(): void;
}

/** The runs whose partial output a stream of all runs also gets. A named stream can change them while it is open. */
export interface FollowedPartials {
  name: string | null;
  runs: readonly string[];
}

export interface FeedHubOptions {
  /** The longest time that events wait after a batch, to be sent together in the next one. */
  tickMs?: number;
  heartbeatMs?: number;
  /** Called when reading fails. The affected streams are closed so that their clients reconnect. */
  onError(error: unknown): void;
}

/** The size of the page cache, which followers at the same position share. */
const maxCachedBytes = 8 * 1024 * 1024;

/**
 * Reads each followed run once (and the feed of all runs once per user), however many clients follow it. Each event is
 * encoded once and sent to all followers that are up to date. A follower that is behind reads separately.
 */
export function createFeedHub({ tickMs = 10, heartbeatMs = 15_000, onError }: FeedHubOptions): FeedHub {
  const feeds = new Map<string, Feed>();
  const partialsBySink = new Map<Sink, { name: string | null; runs: ReadonlySet<string> }>();
  const waitForTurn = createTurnQueue();
  const pages = createPageCache<Batch>({
    maxBytes: maxCachedBytes,
    measure: ({ bytes }) => bytes.length,
    // Events may follow an empty page at any moment.
    isCacheable: ({ isEmpty }) => !isEmpty,
  });
  let heartbeat: NodeJS.Timeout | null = null;
  let isStopped = false;

  return {
    follow(source, after, sink, partials) {
      if (isStopped) {
        sink.end();
        return { stop() {} };
      }
      heartbeat ??= setInterval(sendHeartbeats, heartbeatMs).unref();
      let feed = feeds.get(source.key);
      if (!feed) {
        feed = createFeed({ source, tickMs, waitForTurn, pages, onError, onEmpty: () => remove(source.key) });
        feeds.set(source.key, feed);
      }
      const subscription = feed.add(after, sink);
      if (partials === undefined) return subscription;
      partialsBySink.set(sink, { name: partials.name, runs: new Set(partials.runs) });
      return {
        stop() {
          partialsBySink.delete(sink);
          subscription.stop();
        },
      };
    },
    setPartials(name, runs) {
      for (const [sink, partials] of partialsBySink) {
        if (partials.name !== name) continue;
        partialsBySink.set(sink, { name, runs: new Set(runs) });
        return true;
      }
      return false;
    },
    announce(run_ids) {
      if (feeds.size === 0) return;
      if (run_ids !== null) for (const run_id of run_ids) feeds.get(run_id)?.wake();
      for (const feed of feeds.values()) if (run_ids === null || feed.isGlobal) feed.wake();
    },
    sendLive(run_id, message) {
      feeds.get(run_id)?.sendLive(message);
      const bytes = Buffer.from(message);
      for (const [sink, { runs }] of partialsBySink)
        if (runs.has(run_id) && sink.bufferedBytes === 0) sink.write(bytes);
    },
    get followers() {
      let count = 0;
      for (const feed of feeds.values()) count += feed.size;
      return count;
    },
    stop() {
      isStopped = true;
      for (const feed of feeds.values()) feed.stop();
    },
  };

  function sendHeartbeats(): void {
    for (const feed of feeds.values()) feed.sendHeartbeat();
  }

  function remove(key: string): void {
    feeds.delete(key);
    pages.evict(`${key} `);
    if (feeds.size > 0 || !heartbeat) return;
    clearInterval(heartbeat);
    heartbeat = null;
  }
}
