import { hasEnded } from "../../model/states.ts";
import { maxPageBytes, readFeed } from "../../show/pages.ts";
import { createGlobalFeedSource, createRunFeedSource } from "../../show/feed-sources.ts";
import type { OwnerLookup } from "../../show/owner-lookup.ts";
import type { RecordDeps, SystemDeps } from "../deps.ts";
import { notFound } from "../refusal.ts";
import { FeedReply, Reply } from "../reply.ts";
import { createRouteBuilder } from "../route.ts";
import { people, type Principal, canSee, getVisibleOwner } from "../rule.ts";

const route = createRouteBuilder<RecordDeps>();

export const eventRoutes = [
  route("GET /runs/{run_id}/events", {
    rule: { roles: people, object: "run", attempt: true },
    async handle({ deps: { store }, object: { run_id, status }, query, headers, stream }) {
      if (!stream) {
        const items = await store.read.events(run_id, query.after ?? 0, query.limit, maxPageBytes);
        const last = items.at(-1)?.seq;
        if (last === undefined) return { items, next_cursor: null };
        const more = items.length === query.limit || last < (await store.read.last_position(run_id));
        return { items, next_cursor: more ? last : null };
      }
      const after = getStart(headers, query);
      // 204 tells an EventSource not to reconnect.
      if (hasEnded(status) && (await store.read.events(run_id, after, 1)).length === 0) return new Reply(204);
      return new FeedReply(createRunFeedSource(store.read, run_id), after);
    },
  }),
  route("GET /events", {
    rule: { roles: people },
    async handle({ deps: { store, owners }, principal, query, headers, stream }) {
      const owner = getVisibleOwner(principal);
      if (stream) {
        const runs = await filterVisible(query.follow ?? [], principal, owners);
        const partials = { name: query.stream === undefined ? null : scopeStreamName(principal, query.stream), runs };
        return new FeedReply(createGlobalFeedSource(store.read, owner, owners), getStart(headers, query), partials);
      }
      const after = query.after ?? 0;
      const { events, reached } = await readFeed(
        store.read,
        after,
        { limit: query.limit, maxBytes: maxPageBytes },
        owner,
        owners,
      );
      return { items: events, next_cursor: reached > after ? reached : null };
    },
  }),
];

export const followRoutes = [
  createRouteBuilder<SystemDeps>()("POST /events/follow", {
    rule: { roles: people },
    async handle({ deps, principal, body: { stream, follow } }) {
      const runs = await filterVisible(follow, principal, deps.owners);
      if (!deps.hub.setPartials(scopeStreamName(principal, stream), runs)) throw notFound("stream", "body.stream");
      return undefined;
    },
  }),
];

/** Stream names are scoped to the token. */
function scopeStreamName(principal: Principal, stream: string): string {
  return `${principal.kind === "token" ? principal.token_id : ""} ${stream}`;
}

async function filterVisible(run_ids: readonly string[], principal: Principal, owners: OwnerLookup): Promise<string[]> {
  const visibleIds: string[] = [];
  for (const run_id of run_ids) {
    const owner = await owners(run_id);
    if (owner !== null && canSee(principal, owner)) visibleIds.push(run_id);
  }
  return visibleIds;
}

/** A reconnecting browser repeats the original URL, so Last-Event-ID takes precedence over `after`. */
function getStart(headers: { "last-event-id"?: number | undefined }, query: { after?: number | undefined }): number {
  return headers["last-event-id"] ?? query.after ?? 0;
}
