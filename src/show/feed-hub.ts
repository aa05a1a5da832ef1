import { type Batch, createFeed, type Feed, type FeedSource, type Sink } from "./feed.ts";
import { createPageCache } from "./page-cache.ts";
import { createTurnQueue } from "./turn-queue.ts";

export interface FeedHub {
  /** Sends everything after `after` to the sink, then what comes, until it ends or `stop` is called. */
  follow(source: FeedSource, after: number, sink: Sink, partials?: FollowedPartials): { stop(): void };
  /** Changes the runs whose partials a named stream gets. False: there is no such stream here. */
  setPartials(name: string, runs: readonly string[]): boolean;
  /** The logs of these runs have grown; null: of which is not known. */
  changed(run_ids: Iterable<string> | null): void;
  /** To whoever follows this run and keeps up; kept for nobody. */
  live(run_id: string, message: string): void;
  readonly followers: number;
  /** Ends every stream. Idempotent. */
  stop(): void;
}

/** The runs whose partials a stream of all runs gets too. One with a name can change them while it is open. */
export interface FollowedPartials {
  name: string | null;
  runs: readonly string[];
}

export interface FeedHubOptions {
  /** How long events gather, after some were sent, before the next go in one piece. */
  tickMs?: number;
  heartbeatMs?: number;
  /** Reading failed: the streams it was for are ended, so that their readers come back. */
  onFault(error: unknown): void;
}

/** Of pages that are kept for others who are at the same place. */
const maxKeptBytes = 8 * 1024 * 1024;

/**
 * One reader per followed run (and one per asker of the feed of all runs), however many follow it: what
 * it reads is encoded once and handed to all who are up to date. Whoever is not reads on its own.
 */
export function createFeedHub({ tickMs = 10, heartbeatMs = 15_000, onFault }: FeedHubOptions): FeedHub {
  const feeds = new Map<string, Feed>();
  const withPartials = new Map<Sink, { name: string | null; runs: ReadonlySet<string> }>();
  const turn = createTurnQueue();
  const pages = createPageCache<Batch>({
    maxBytes: maxKeptBytes,
    bytesOf: ({ bytes }) => bytes.length,
    // what follows an empty one may be stored any moment
    keeps: ({ empty }) => !empty,
  });
  let heartbeat: NodeJS.Timeout | null = null;
  let stopped = false;

  return {
    follow(source, after, sink, partials) {
      if (stopped) {
        sink.end();
        return { stop() {} };
      }
      heartbeat ??= setInterval(beat, heartbeatMs).unref();
      let feed = feeds.get(source.key);
      if (!feed) {
        feed = createFeed({ source, tickMs, turn, pages, onFault, onEmpty: () => forget(source.key) });
        feeds.set(source.key, feed);
      }
      const following = feed.add(after, sink);
      if (partials === undefined) return following;
      withPartials.set(sink, { name: partials.name, runs: new Set(partials.runs) });
      return {
        stop() {
          withPartials.delete(sink);
          following.stop();
        },
      };
    },
    setPartials(name, runs) {
      for (const [sink, one] of withPartials) {
        if (one.name !== name) continue;
        withPartials.set(sink, { name, runs: new Set(runs) });
        return true;
      }
      return false;
    },
    changed(run_ids) {
      if (feeds.size === 0) return;
      if (run_ids !== null) for (const run_id of run_ids) feeds.get(run_id)?.wake();
      for (const feed of feeds.values()) if (run_ids === null || feed.ofAll) feed.wake();
    },
    live(run_id, message) {
      feeds.get(run_id)?.live(message);
      for (const [sink, { runs }] of withPartials)
        if (runs.has(run_id) && sink.waiting === 0) sink.write(Buffer.from(message));
    },
    get followers() {
      let count = 0;
      for (const feed of feeds.values()) count += feed.size;
      return count;
    },
    stop() {
      stopped = true;
      for (const feed of feeds.values()) feed.stop();
    },
  };

  function beat(): void {
    for (const feed of feeds.values()) feed.beat();
  }

  function forget(key: string): void {
    feeds.delete(key);
    pages.forget(`${key} `);
    if (feeds.size > 0 || !heartbeat) return;
    clearInterval(heartbeat);
    heartbeat = null;
  }
}
