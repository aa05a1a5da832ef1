import { monotonicMs } from "../model/clock.ts";
import type { StoredEvent } from "../model/event.ts";
import type { PageCache } from "./page-cache.ts";
import type { WaitForTurn } from "./turn-queue.ts";

export interface FeedSource {
  /** A run_id, or another name for a feed of all runs. */
  key: string;
  ofAll: boolean;
  /** Events after a place, about `maxBytes` of them, and the place reached: it may be past the last event given. */
  read(after: number, limit: number, maxBytes: number): Promise<{ events: StoredEvent[]; reached: number }>;
  /** The place of the last event there is. */
  last(): Promise<number>;
  encode(event: StoredEvent): string;
  /** True after the last event there will ever be. */
  isLast(event: StoredEvent): boolean;
}

/** Where a follower's bytes go. Never blocks: a sink that is full says so and is left alone until it has drained. */
export interface Sink {
  /** False: full, call again only after `drained`. */
  write(bytes: Uint8Array): boolean;
  /** Bytes it was given and has not passed on. */
  readonly waiting: number;
  drained(): Promise<void>;
  end(): void;
}

export interface Feed {
  readonly size: number;
  readonly ofAll: boolean;
  add(after: number, sink: Sink): { stop(): void };
  wake(): void;
  beat(): void;
  /** Now or never: whoever is behind does not get it. */
  live(message: string): void;
  stop(): void;
}

interface FeedOptions {
  source: FeedSource;
  tickMs: number;
  /** Shared by all feeds: a reader that catches up waits for its turn before each page. */
  turn: WaitForTurn;
  pages: PageCache<Batch>;
  onFault(error: unknown): void;
  onEmpty(): void;
}

/** `place` is where the follower is; one that is `apart` reads for itself and takes no part in shared sends. */
interface Follower {
  sink: Sink;
  place: number;
  apart: boolean;
  /** Its sink took the last piece but wants no more yet. */
  full: boolean;
  gone: boolean;
  /** It is known not to be ahead of the log. */
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

/** The shared page exists once, a follower's own once for each of them. */
const sharedPage = { events: 256, bytes: 256 * 1024 };
const ownPage = { events: 256, bytes: 64 * 1024 };
/** How far a follower may be behind and still share: some pages of ordinary events. */
const maxShared = 1024 * 1024;
const heartbeat = Buffer.from(": still here\n\n");
const endMark = Buffer.from("event: end\ndata: {}\n\n");

export function createFeed({ source, tickMs, turn, pages, onFault, onEmpty }: FeedOptions): Feed {
  const followers = new Set<Follower>();
  /** Up to where the shared reader has read; null until the first follower has caught up by itself. */
  let place: number | null = null;
  let timer: NodeJS.Timeout | null = null;
  /** When a batch was last sent. An event after a pause is sent at once; events within a tick of the last batch are gathered. */
  let sharedAt = -Infinity;
  let reading = false;
  let again = false;

  return {
    ofAll: source.ofAll,
    get size() {
      return followers.size;
    },
    add(after, sink) {
      const follower: Follower = { sink, place: after, apart: true, full: false, gone: false, bounded: after === 0 };
      followers.add(follower);
      void catchUp(follower);
      return { stop: () => drop(follower) };
    },
    wake,
    beat() {
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
    if (reading) again = true;
    else timer ??= setTimeout(() => void share(), Math.max(1, sharedAt + tickMs - monotonicMs()));
  }

  /** The shared read: everything new, encoded once, in as many sends as there are pages. */
  async function share(): Promise<void> {
    timer = null;
    if (place === null || reading) return;
    reading = true;
    try {
      for (let more = true; more && place !== null && followers.size > 0;) {
        const batch = await readBatch(place, sharedPage);
        // somebody who found nobody sharing may have taken it further meanwhile
        if (place === batch.from) place = batch.to;
        for (const follower of followers) if (!follower.apart && follower.place === batch.from) give(follower, batch);
        more = !batch.empty;
        if (more) sharedAt = monotonicMs();
      }
    } catch (error) {
      endAll(error);
    } finally {
      reading = false;
      if (again) {
        again = false;
        wake();
      }
    }
  }

  /** One follower on its own: a new one, or one whose sink was full. It holds at most one page at a time. */
  async function catchUp(follower: Follower): Promise<void> {
    try {
      while (!follower.gone) {
        await turn();
        if (follower.gone) return;
        const shared = place;
        const batch = await ownBatch(follower.place);
        if (follower.gone) return;
        if (batch.empty) {
          await comeDown(follower);
          return join(follower, shared);
        }
        give(follower, batch);
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

  /** Nobody is ahead of the log: a place that is not reached yet would be waited for, by those who share it too. */
  async function comeDown(follower: Follower): Promise<void> {
    if (follower.bounded) return;
    follower.place = Math.min(follower.place, await source.last());
    follower.bounded = true;
    // from here on nothing is missed: one who also reads lists reads them after this
    send(follower, heartbeat);
  }

  /**
   * Nothing more to read: from here on with the others. `shared` is how far they were before that was found, so that up
   * to there nothing is left to read, be it that it was removed.
   */
  function join(follower: Follower, shared: number | null): void {
    if (follower.gone) return;
    if (shared !== null) follower.place = Math.max(follower.place, shared);
    // if nobody shares, nobody is behind: those would have been at `place`
    if (place === null || ![...followers].some((one) => !one.apart)) place = Math.max(place ?? 0, follower.place);
    if (place !== follower.place) return lookAgainLater(follower);
    follower.apart = false;
    // what was stored between the read and this line
    wake();
  }

  /** It is a moment behind the shared reader, or that one behind it: never at once, as nothing else would have a turn. */
  function lookAgainLater(follower: Follower): void {
    wake();
    setTimeout(() => void catchUp(follower), tickMs);
  }

  function give(follower: Follower, batch: Batch): void {
    follower.place = batch.to;
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
    // one page is more than a socket takes at once; as it is the same bytes for all, what waits costs nothing yet
    if (follower.sink.waiting <= maxShared) return;
    // too slow for the others: it goes on by itself from where it is, when it can take more
    follower.apart = true;
    void follower.sink.drained().then(() => catchUp(follower));
  }

  /** Many who begin at the same place get the same bytes. */
  function ownBatch(from: number): Promise<Batch> {
    return pages.get(`${source.key} ${from}`, () => readBatch(from, ownPage));
  }

  async function readBatch(from: number, page: typeof ownPage): Promise<Batch> {
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
    // a second stop must not end a feed that others have begun since
    if (!followers.delete(follower) || followers.size > 0) return;
    if (timer) clearTimeout(timer);
    timer = null;
    place = null;
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
