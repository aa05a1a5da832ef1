import type { IncomingMessage, ServerResponse } from "node:http";
import { z } from "zod";
import type { StoredEvent } from "../../model/event.ts";
import { isTerminal } from "../../model/states.ts";
import type { FeedSource } from "../../show/feed.ts";
import type { FeedHub } from "../../show/feed-hub.ts";
import { readFeed } from "../../show/pages.ts";
import { allFeed, runFeed } from "../../show/tail.ts";
import { eventsQuerySchema, storedEventSchema } from "../../wire/schemas.ts";
import { check } from "../check.ts";
import { alreadySent, json, noContent, route } from "../route.ts";
import { anyone, seesOnly } from "../rule.ts";
import { sinkOf } from "../sse-sink.ts";

const page = z.object({ items: z.array(storedEventSchema), next_cursor: z.string().nullable() });
const lastEventId = z.object({
  "last-event-id": z.coerce.number().int().min(0).max(Number.MAX_SAFE_INTEGER).optional(),
});
const answers = {
  200: {
    description: "A page of events; as text/event-stream, where that is asked for, all of them as they come",
    schema: page,
  },
  204: { description: "As text/event-stream: the run has ended and there is nothing after this event" },
};

export const eventRoutes = [
  route({
    method: "get",
    path: "/runs/{run_id}/events",
    rule: { roles: anyone, object: "run", attempt: true },
    summary: "The log of a run, as a page or as a stream",
    query: eventsQuerySchema,
    headers: lastEventId,
    answers,
    async handle({ deps, object, query, headers, incoming, outgoing }) {
      const { read } = deps.store;
      if (!wantsStream(incoming)) {
        const events = await read.events(object.run_id, query.after ?? 0, query.limit);
        return json(pageOfEvents(events, query.limit, events.at(-1)?.seq));
      }
      const after = startOf(headers, query.after);
      // tells a browser that it need not come back
      if (isTerminal(object.status) && (await read.events(object.run_id, after, 1)).length === 0) return noContent();
      return stream(deps.hub, runFeed(read, object.run_id), after, outgoing);
    },
  }),
  route({
    method: "get",
    path: "/events",
    rule: { roles: anyone },
    summary: "The events of all runs in the order they were stored, as a page or as a stream",
    query: eventsQuerySchema,
    headers: lastEventId,
    answers,
    async handle({ deps, principal, query, headers, incoming, outgoing }) {
      const only = seesOnly(principal);
      if (!wantsStream(incoming)) {
        const { events, reached } = await readFeed(deps.store.read, query.after ?? 0, query.limit, only, deps.owners);
        return json({ items: events, next_cursor: reached > (query.after ?? 0) ? String(reached) : null });
      }
      return stream(deps.hub, allFeed(deps.store.read, only, deps.owners), startOf(headers, query.after), outgoing);
    },
  }),
];

function stream(hub: FeedHub, source: FeedSource, after: number, outgoing: ServerResponse): Response {
  const sink = sinkOf(outgoing);
  sink.whenClosed(hub.follow(source, after, sink).stop);
  return alreadySent();
}

/** HEAD asks for no body, and would wait for the end of one. */
function wantsStream({ method, headers }: IncomingMessage): boolean {
  return method === "GET" && /(?:^|,)\s*text\/event-stream\s*(?:[;,]|$)/i.test(headers.accept ?? "");
}

/** A browser that reconnects repeats the address it first had: what it says it has seen goes before. */
function startOf(headers: Readonly<Record<string, unknown>>, after: number | undefined): number {
  const seen = headers["last-event-id"];
  return (
    check(lastEventId, seen === undefined ? {} : { "last-event-id": seen }, "header")["last-event-id"] ?? after ?? 0
  );
}

function pageOfEvents(
  items: StoredEvent[],
  limit: number,
  last: number | undefined,
): { items: StoredEvent[]; next_cursor: string | null } {
  return { items, next_cursor: items.length === limit && last !== undefined ? String(last) : null };
}
