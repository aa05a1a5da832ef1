import type { StoredEvent } from "../model/event.ts";
import type { ReportRequest } from "../model/runner-port.ts";
import type { Reads } from "../model/store.ts";
import type { FeedSource } from "./feed.ts";
import type { OwnerLookup } from "./owner-lookup.ts";
import { readFeed } from "./pages.ts";

/** A run's log as a feed: places are its `seq`, and the result is its last event. */
export function runFeed(read: Reads, run_id: string): FeedSource {
  return {
    key: run_id,
    ofAll: false,
    async read(after, limit, maxBytes) {
      const events = await read.events(run_id, after, limit, maxBytes);
      return { events, reached: events.at(-1)?.seq ?? after };
    },
    last: () => read.last_position(run_id),
    encode: (event) => toMessage(event.seq, event),
    isLast: (event) => event.event.type === "result",
  };
}

/** The events of all runs that one asker may see: places are cursors, and there is always more to come. */
export function allFeed(read: Reads, only: string | null, owners: OwnerLookup): FeedSource {
  return {
    key: only === null ? "*" : `*${only}`,
    ofAll: true,
    read: (after, limit, maxBytes) => readFeed(read, after, { limit, maxBytes }, only, owners),
    last: () => read.last_position(null),
    encode: (event) => toMessage(event.cursor, event),
    isLast: () => false,
  };
}

/** Without an id: it is no place in the log that a reader could go on from. */
export function partialMessage(partial: ReportRequest["partials"][number]): string {
  return `event: partial\ndata: ${JSON.stringify(partial)}\n\n`;
}

/** JSON has no line breaks of its own, so that one data line is enough. */
function toMessage(id: number, event: StoredEvent): string {
  return `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`;
}
