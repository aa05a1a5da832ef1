import { monotonicMs } from "../model/clock.ts";
import type { StoredEvent } from "../model/event.ts";
import type { PageCache } from "./page-cache.ts";
import type { WaitForTurn } from "./turn-queue.ts";

export interface FeedSource {
  /** A run_id, or another unique key for a feed of all runs. */
  key: string;
  isGlobal: boolean;
  /** Whether it has events of runs with different owners. */
  mixesOwners: boolean;
  /** Returns about `maxBytes` of events after a position, and the position reached, which may be past the last event returned. */
  read(after: number, limit: number, maxBytes: number): Promise<{ events: StoredEvent[]; reached: number }>;
  /** The position of the last event stored. */
  readLastPosition(): Promise<number>;
  encode(event: StoredEvent): string;
  /** Whether no event can follow this one. */
  isLast(event: StoredEvent): boolean;
}

/** Receives the bytes for one follower. Writing never blocks: after `write` returns false, the feed waits for `drained`. */
export interface Sink {
  /** Returns false if the sink is full. Write again only after `drained`. */
  write(bytes: Uint8Array): boolean;
  /** The bytes buffered in the sink. */
  readonly bufferedBytes: number;
  drained(): Promise<void>;
  end(): void;
}

export interface Feed {
  readonly size: number;
  readonly isGlobal: boolean;
  add(after: number, sink: Sink): { stop(): void };
  wake(): void;
  sendHeartbeat(): void;
  /** Sends a message to followers that are up to date. Others never get it. */
  sendLive(message: string): void;
  stop(): void;
}

interface FeedOptions {
  source: FeedSource;
  /** The longest pause between two shared batches. */
  tickMs: number;
  /** Shared by all feeds. A follower that catches up waits for its turn before each page. */
  waitForTurn: WaitForTurn;
  pages: PageCache<Batch>;
  onError(error: unknown): void;
  onEmpty(): void;
}

interface Follower {
  sink: Sink;
  /** The position up to which it has been sent events. */
  position: number;
  /** Whether it reads on its own and gets no shared batches. */
  readsSeparately: boolean;
  /** Whether its sink accepted the last bytes but cannot take more yet. */
  isFull: boolean;
  isRemoved: boolean;
  /** Whether its position is known not to be past the end of the log. */
  isPositionChecked: boolean;
}

/** An encoded page. */
export interface Batch {
  from: number;
  to: number;
  bytes: Uint8Array;
  isEmpty: boolean;
  isLast: boolean;
}

/** A shared page is in memory once, a separate page once per follower. */
const sharedPage = { events: 256, bytes: 256 * 1024 };
const separatePage = { events: 256, bytes: 64 * 1024 };
/** A follower with more unsent bytes than this, a few pages of ordinary events, gets no more shared batches. */
const maxUnsentBytes = 1024 * 1024;
/** The pause after a shared batch, as a multiple of the time that the batch took. */
const pauseFactor = 4;
const heartbeat = Buffer.from(": still here\n\n");
const endMessage = Buffer.from("event: end\ndata: {}\n\n");

export function createFeed({ source, tickMs, waitForTurn, pages, onError, onEmpty }: FeedOptions): Feed {
  const followers = new Set<Follower>();
  /** The position of the shared reader. null until the first follower has caught up. */
  let position: number | null = null;
  let scheduledRead: ScheduledRead | null = null;
  /**
   * The next batch is sent at this time at the earliest. After a cheap batch the pause is short. With many readers or on a
   * busy coordinator it grows to a tick, and the events of a tick are sent together.
   */
  let pausedUntil = -Infinity;
  let isReading = false;
  let isReadRequested = false;

  return {
    isGlobal: source.isGlobal,
    get size() {
      return followers.size;
    },
    add(after, sink) {
      const follower: Follower = {
        sink,
        position: after,
        readsSeparately: true,
        isFull: false,
        isRemoved: false,
        isPositionChecked: after === 0,
      };
      followers.add(follower);
      void catchUp(follower);
      return { stop: () => removeFollower(follower) };
    },
    wake,
    sendHeartbeat() {
      for (const follower of followers) if (!follower.readsSeparately) sendBytes(follower, heartbeat);
    },
    sendLive(message) {
      const bytes = Buffer.from(message);
      for (const { readsSeparately, sink } of followers)
        if (!readsSeparately && sink.bufferedBytes === 0) sink.write(bytes);
    },
    stop() {
      for (const follower of followers) {
        follower.sink.end();
        removeFollower(follower);
      }
    },
  };

  function wake(): void {
    if (isReading) isReadRequested = true;
    else scheduledRead ??= schedule(Math.max(monotonicMs(), pausedUntil), sendNewBatches);
  }

  /** Reads all new events, encodes each page once and sends it to all followers that are up to date. */
  async function sendNewBatches(dueAt: number): Promise<void> {
    scheduledRead = null;
    if (position === null || isReading) return;
    isReading = true;
    try {
      while (position !== null && followers.size > 0) {
        const batch = await readBatch(position, sharedPage);
        // A follower that joined when none was sharing may have advanced the position meanwhile.
        if (position === batch.from) position = batch.to;
        for (const follower of followers)
          if (!follower.readsSeparately && follower.position === batch.from) deliver(follower, batch);
        if (batch.isEmpty) break;
        // Counting from when the batch was due makes the pause longer if the event loop is late.
        const now = monotonicMs();
        pausedUntil = now + Math.min(tickMs, (now - dueAt) * pauseFactor);
      }
    } catch (error) {
      endAll(error);
    } finally {
      isReading = false;
      if (isReadRequested) {
        isReadRequested = false;
        wake();
      }
    }
  }

  /** Brings a new follower, or one whose sink was full, up to date. Holds at most one page in memory. */
  async function catchUp(follower: Follower): Promise<void> {
    try {
      while (!follower.isRemoved) {
        await waitForTurn();
        if (follower.isRemoved) return;
        const shared = position;
        const batch = await readSeparateBatch(follower.position);
        if (follower.isRemoved) return;
        if (batch.isEmpty) {
          await clampToEnd(follower);
          return join(follower, shared);
        }
        deliver(follower, batch);
        if (follower.isRemoved) return;
        if (follower.isFull) await follower.sink.drained();
        follower.isFull = false;
      }
    } catch (error) {
      follower.sink.end();
      removeFollower(follower);
      onError(error);
    }
  }

  /** Moves a follower back to the end of the log. A position beyond it would delay all followers that share the reader. */
  async function clampToEnd(follower: Follower): Promise<void> {
    if (follower.isPositionChecked) return;
    follower.position = Math.min(follower.position, await source.readLastPosition());
    follower.isPositionChecked = true;
    // Tells the client that it misses no events from now on, so it can read lists.
    sendBytes(follower, heartbeat);
  }

  /**
   * Lets a follower that has caught up share with the others. `shared` was the shared position before its last, empty
   * read, so up to there nothing is left for it to read, even if events were removed.
   */
  function join(follower: Follower, shared: number | null): void {
    if (follower.isRemoved) return;
    if (shared !== null) follower.position = Math.max(follower.position, shared);
    // If no follower is sharing, the shared position can advance without any follower missing events.
    if (position === null || ![...followers].some(({ readsSeparately }) => !readsSeparately))
      position = Math.max(position ?? 0, follower.position);
    if (position !== follower.position) return retryCatchUp(follower);
    follower.readsSeparately = false;
    // Events may have been stored since the last read.
    wake();
  }

  /** The follower and the shared reader are at different positions. Waits a tick, because retrying at once would starve everything else. */
  function retryCatchUp(follower: Follower): void {
    wake();
    setTimeout(() => void catchUp(follower), tickMs);
  }

  function deliver(follower: Follower, batch: Batch): void {
    follower.position = batch.to;
    if (batch.bytes.length > 0) sendBytes(follower, batch.bytes);
    if (!batch.isLast || follower.isRemoved) return;
    follower.sink.write(endMessage);
    follower.sink.end();
    removeFollower(follower);
  }

  function sendBytes(follower: Follower, bytes: Uint8Array): void {
    if (follower.sink.write(bytes)) return;
    if (follower.readsSeparately) {
      follower.isFull = true;
      return;
    }
    // A page is more than a socket takes at once, but all followers share its bytes, so buffering it costs little.
    if (follower.sink.bufferedBytes <= maxUnsentBytes) return;
    // Too slow for the others: once its sink has drained, it catches up separately.
    follower.readsSeparately = true;
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
      isEmpty: events.length === 0 && reached === from,
      bytes: Buffer.from(events.map(source.encode).join("")),
      isLast: last !== undefined && source.isLast(last),
    };
  }

  function removeFollower(follower: Follower): void {
    follower.isRemoved = true;
    // A second stop must not end a feed that others have joined since.
    if (!followers.delete(follower) || followers.size > 0) return;
    scheduledRead?.cancel();
    scheduledRead = null;
    position = null;
    onEmpty();
  }

  function endAll(error: unknown): void {
    onError(error);
    for (const follower of followers) {
      follower.sink.end();
      removeFollower(follower);
    }
  }
}

interface ScheduledRead {
  cancel(): void;
}

/** Calls `work` at `dueAt`. If that is now, calls it at the end of this turn of the event loop instead of a millisecond later. */
function schedule(dueAt: number, work: (dueAt: number) => Promise<void>): ScheduledRead {
  const delayMs = dueAt - monotonicMs();
  if (delayMs <= 0) {
    const immediate = setImmediate(() => void work(dueAt));
    return { cancel: () => clearImmediate(immediate) };
  }
  const timer = setTimeout(() => void work(dueAt), delayMs);
  return { cancel: () => clearTimeout(timer) };
}
