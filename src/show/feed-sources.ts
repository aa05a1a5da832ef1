import type { StoredEvent } from "../model/event.ts";
import type { ReportRequest } from "../model/runner-port.ts";
import type { Reads } from "../model/store.ts";
import type { FeedSource } from "./feed.ts";
import type { OwnerLookup } from "./owner-lookup.ts";
import { readFeed } from "./pages.ts";

/** Reads the log of one run. Positions are `seq` numbers, and the result is the last event. */
export function createRunFeedSource(read: Reads, run_id: string): FeedSource {
  return {
    key: run_id,
    isGlobal: false,
    mixesOwners: false,
    async read(after, limit, maxBytes) {
      const events = await read.events(run_id, after, limit, maxBytes);
      return { events, reached: events.at(-1)?.seq ?? after };
    },
    readLastPosition: () => read.last_position(run_id),
    encode: (event) => toMessage(event.seq, event),
    isLast: (event) => event.event.type === "result",
  };
}

/** Reads the events of all runs a caller may see. Positions are cursors, and the feed never ends. */
export function createGlobalFeedSource(read: Reads, owner: string | null, owners: OwnerLookup): FeedSource {
  return {
    key: owner === null ? "*" : `*${owner}`,
    isGlobal: true,
    mixesOwners: owner === null,
    read: (after, limit, maxBytes) => readFeed(read, after, { limit, maxBytes }, owner, owners),
    readLastPosition: () => read.last_position(null),
    encode: (event) => toMessage(event.cursor, event),
    isLast: () => false,
  };
}

/** Formats partial output. The message has no id, because a client cannot resume from it: partial output is not in the log. */
export function toPartialMessage(partial: ReportRequest["partials"][number]): string {
  return `event: partial\ndata: ${JSON.stringify(partial)}\n\n`;
}

/** Serialized JSON contains no line breaks, so one data line is enough. */
function toMessage(id: number, event: StoredEvent): string {
  return `id: ${id}\ndata: ${JSON.stringify(event)}\n\n`;
}
