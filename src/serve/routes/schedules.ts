import { toCursor } from "../../show/cursor.ts";
import type { ApiDeps } from "../deps.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { parsePage } from "../page.ts";
import { refusalFromFault } from "../refusal.ts";
import { Reply } from "../reply.ts";
import { createRouteBuilder } from "../route.ts";
import { people, getVisibleOwner, getSubject, submitters } from "../rule.ts";

const route = createRouteBuilder<ApiDeps>();

export const scheduleRoutes = [
  route("GET /schedules", {
    rule: { roles: people },
    async handle({ deps, principal, query: { limit, cursor, ...filter } }) {
      const { before: after } = parsePage("schedules", limit, cursor);
      const owner = getVisibleOwner(principal);
      const ownFilter = omitUndefined({ ...filter, created_by: owner ?? undefined });
      const items = await deps.store.read.schedules(ownFilter, omitUndefined({ limit, after }));
      const last = items.at(-1)?.schedule_id;
      // The page may be shorter than `limit` if the schedules are large, so check for one more.
      const more = last === undefined ? [] : await deps.store.read.schedules(ownFilter, { limit: 1, after: last });
      const next_cursor = last !== undefined && more.length > 0 ? toCursor("schedules", last) : null;
      return { items: items.map(deps.schedules.show), next_cursor };
    },
  }),
  route("POST /schedules", {
    rule: { roles: submitters },
    async handle({ deps, principal, body, signal }) {
      const role = principal.kind === "token" ? principal.role : "user";
      const result = await deps.schedules.create(omitUndefined(body), { subject: getSubject(principal), role, signal });
      if (!result.ok) throw refusalFromFault(result.fault);
      return new Reply(201, result.schedule, { location: `/schedules/${result.schedule.schedule_id}` });
    },
  }),
  route("POST /schedules/preview", {
    rule: { roles: people },
    async handle({ deps, body: { from, count, ...timing } }) {
      const previewed = deps.schedules.preview(
        omitUndefined(timing),
        from === undefined ? null : Date.parse(from),
        count,
      );
      if (!previewed.ok) throw refusalFromFault(previewed.fault);
      return { timezone: timing.timezone, next: previewed.next };
    },
  }),
  route("GET /schedules/{schedule_id}", {
    rule: { roles: people, object: "schedule" },
    handle: async ({ deps, object }) => deps.schedules.show(object),
  }),
  route("PATCH /schedules/{schedule_id}", {
    rule: { roles: submitters, object: "schedule" },
    async handle({ deps, object, body }) {
      const changed = await deps.schedules.change(object, omitUndefined(body));
      if (!changed.ok) throw refusalFromFault(changed.fault);
      return changed.schedule;
    },
  }),
  route("DELETE /schedules/{schedule_id}", {
    rule: { roles: submitters, object: "schedule" },
    async handle({ deps, object }) {
      const fault = await deps.schedules.remove(object);
      if (fault !== null) throw refusalFromFault(fault);
      return undefined;
    },
  }),
  route("POST /schedules/{schedule_id}/run", {
    rule: { roles: submitters, object: "schedule" },
    async handle({ deps, object }) {
      const started = await deps.schedules.run(object);
      if (!started.ok) throw refusalFromFault(started.fault);
      return new Reply(201, started.run, { location: `/runs/${started.run.run_id}` });
    },
  }),
  route("GET /schedules/{schedule_id}/history", {
    rule: { roles: people, object: "schedule" },
    async handle({ deps, object: { schedule_id }, query: { limit, cursor } }) {
      const { before } = parsePage("slots", limit, cursor);
      const slots = await deps.store.read.slots(schedule_id, omitUndefined({ limit: limit + 1, before }));
      const items = slots.slice(0, limit);
      const last = items.at(-1);
      return { items, next_cursor: slots.length > limit && last ? toCursor("slots", last.slot) : null };
    },
  }),
];
