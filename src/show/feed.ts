import { monotonicMs } from "../model/clock.ts";
import type { StoredEvent } from "../model/event.ts";
import type { PageCache } from "./page-cache.ts";
import type { WaitForTurn } from "./turn-queue.ts";

export interface FeedSource {
  /** A run_id, or another name for a feed of all runs. */
  key: string;
  ofAll: boolean;
  /** Returns about `maxBytes` of events after a position, and the position reached, which may be past the last event returned. */
  read(after: number, limit: number, maxBytes: number): Promise<{ events: StoredEvent[]; reached: number }>;
  /** The position of the last event stored. */
  last(): Promise<number>;
  encode(event: StoredEvent): string;
  /** Whether no event can follow this one. */
  isLast(event: StoredEvent): boolean;
}

/** Where a follower's bytes go. Writing never blocks: after `write` returns false, the feed waits for `drained`. */
export interface Sink {
  /** Returns false if the sink is full. Write again only after `drained`. */
  write(bytes: Uint8Array): boolean;
  /** The bytes buffered in the sink. */
  readonly waiting: number;
  drained(): Promise<void>;
  end(): void;
}

export interface Feed {
  readonly size: number;
  readonly ofAll: boolean;
  add(after: number, sink: Sink): { stop(): void };
  wake(): void;
  sendHeartbeat(): void;
  /** Sends a message to followers that are up to date. Others never get it. */
  live(message: string): void;
  stop(): void;
}

interface FeedOptions {
  source: FeedSource;
  tickMs: number;
  /** Shared by all feeds. A follower that catches up waits for its turn before each page. */
  turn: WaitForTurn;
  pages: PageCache<Batch>;
  onFault(error: unknown): void;
  onEmpty(): void;
}

interface Follower {
  sink: Sink;
  /** The position up to which it has been sent events. */
  position: number;
  /** It reads for itself and gets no shared batches. */
  apart: boolean;
  /** Its sink accepted the last bytes but cannot take more yet. */
  full: boolean;
  gone: boolean;
  /** Whether its position was checked not to be past the end of the log. */
  bounded: boolean;
}

/** A page, encoded. */
export interface Batch {
  from: number;
  to: number;
  bytes: Uint8Array;
  empty: boolean;
  last: boolean;
}

/** A shared page is in memory once, a separate page once per follower. */
const sharedPage = { events: 256, bytes: 256 * 1024 };
const separatePage = { events: 256, bytes: 64 * 1024 };
/** A follower with more unsent bytes than this leaves the shared sends. It is a few pages of ordinary events. */
const maxUnsentBytes = 1024 * 1024;
const heartbeat = Buffer.from(": still here\n\n");
const endMark = Buffer.from("event: end\ndata: {}\n\n");

export function createFeed({ source, tickMs, turn, pages, onFault, onEmpty }: FeedOptions): Feed {
  const followers = new Set<Follower>();
  /** The position of the shared reader; null until the first follower has caught up by itself. */
  let position: number | null = null;
  let timer: NodeJS.Timeout | null = null;
  /** When the last batch was sent. An event after a pause is sent at once; events within a tick of the last batch are batched. */
  let sharedAt = -Infinity;
  let reading = false;
  let isReadRequested = false;

  return {
    ofAll: source.ofAll,
    get size() {
      return followers.size;
    },
    add(after, sink) {
      const follower: Follower = { sink, position: after, apart: true, full: false, gone: false, bounded: after === 0 };
      followers.add(follower);
      void catchUp(follower);
      return { stop: () => drop(follower) };
    },
    wake,
    sendHeartbeat() {
      for (const follower of followers) if (!follower.apart) send(follower, heartbeat);
    },
    live(message) {
      const bytes = Buffer.from(message);
      for (const { apart, sink } of followers) if (!apart && sink.waiting === 0) sink.write(bytes);
    },
    stop() {
      for (const follower of followers) {
        follower.sink.end();
        drop(follower);
      }
    },
  };

  function wake(): void {
    if (reading) isReadRequested = true;
    else timer ??= setTimeout(() => void share(), Math.max(1, sharedAt + tickMs - monotonicMs()));
  }

  /** Reads all new events, encodes each page once and sends it to all followers that are up to date. */
  async function share(): Promise<void> {
    timer = null;
    if (position === null || reading) return;
    reading = true;
    try {
      for (let more = true; more && position !== null && followers.size > 0;) {
        const batch = await readBatch(position, sharedPage);
        // A follower that joined while no follower was sharing may have advanced it meanwhile.
        if (position === batch.from) position = batch.to;
        for (const follower of followers)
          if (!follower.apart && follower.position === batch.from) deliver(follower, batch);
        more = !batch.empty;
        if (more) sharedAt = monotonicMs();
      }
    } catch (error) {
      endAll(error);
    } finally {
      reading = false;
      if (isReadRequested) {
        isReadRequested = false;
        wake();
      }
    }
  }

  /** Brings a new follower, or one whose sink was full, up to date. Holds at most one page in memory. */
  async function catchUp(follower: Follower): Promise<void> {
    try {
      while (!follower.gone) {
        await turn();
        if (follower.gone) return;
        const shared = position;
        const batch = await readSeparateBatch(follower.position);
        if (follower.gone) return;
        if (batch.empty) {
          await limitToEnd(follower);
          return join(follower, shared);
        }
        deliver(follower, batch);
        if (follower.gone) return;
        if (follower.full) await follower.sink.drained();
        follower.full = false;
      }
    } catch (error) {
      follower.sink.end();
      drop(follower);
      onFault(error);
    }
  }

  /** Moves a follower back to the end of the log. A position beyond it would delay all followers that share the reader. */
  async function limitToEnd(follower: Follower): Promise<void> {
    if (follower.bounded) return;
    follower.position = Math.min(follower.position, await source.last());
    follower.bounded = true;
    // Tells the client that it misses no events from now on, so it can read lists.
    send(follower, heartbeat);
  }

  /**
   * Lets a follower that has caught up share with the others. `shared` was the shared position before its last, empty
   * read, so up to there nothing is left for it to read, even if events were removed.
   */
  function join(follower: Follower, shared: number | null): void {
    if (follower.gone) return;
    if (shared !== null) follower.position = Math.max(follower.position, shared);
    // If no follower shares, the shared position can advance without one missing events.
    if (position === null || ![...followers].some(({ apart }) => !apart))
      position = Math.max(position ?? 0, follower.position);
    if (position !== follower.position) return catchUpLater(follower);
    follower.apart = false;
    // Events may have been stored since the last read.
    wake();
  }

  /** The follower and the shared reader are slightly apart. Retries after a tick, because retrying at once would starve everything else. */
  function catchUpLater(follower: Follower): void {
    wake();
    setTimeout(() => void catchUp(follower), tickMs);
  }

  function deliver(follower: Follower, batch: Batch): void {
    follower.position = batch.to;
    if (batch.bytes.length > 0) send(follower, batch.bytes);
    if (!batch.last || follower.gone) return;
    follower.sink.write(endMark);
    follower.sink.end();
    drop(follower);
  }

  function send(follower: Follower, bytes: Uint8Array): void {
    if (follower.sink.write(bytes)) return;
    if (follower.apart) {
      follower.full = true;
      return;
    }
    // A page is more than a socket takes at once, but all followers share its bytes, so buffering it costs little.
    if (follower.sink.waiting <= maxUnsentBytes) return;
    // Too slow for the others: once its sink has drained, it catches up separately.
    follower.apart = true;
    void follower.sink.drained().then(() => catchUp(follower));
  }

  /** Followers at the same position share the same bytes. */
  function readSeparateBatch(from: number): Promise<Batch> {
    return pages.get(`${source.key} ${from}`, () => readBatch(from, separatePage));
  }

  async function readBatch(from: number, page: typeof separatePage): Promise<Batch> {
    const { events, reached } = await source.read(from, page.events, page.bytes);
    const last = events.at(-1);
    return {
      from,
      to: reached,
      empty: events.length === 0 && reached === from,
      bytes: Buffer.from(events.map(source.encode).join("")),
      last: last !== undefined && source.isLast(last),
    };
  }

  function drop(follower: Follower): void {
    follower.gone = true;
    // A second stop must not end a feed that others have joined since.
    if (!followers.delete(follower) || followers.size > 0) return;
    if (timer) clearTimeout(timer);
    timer = null;
    position = null;
    onEmpty();
  }

  function endAll(error: unknown): void {
    onFault(error);
    for (const follower of followers) {
      follower.sink.end();
      drop(follower);
    }
  }
}
