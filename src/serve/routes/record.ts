import { drainRunner, stopRuns } from "../../dispatch/control.ts";
import { hasEnded, runStatuses } from "../../model/states.ts";
import { toCursor } from "../../show/cursor.ts";
import { findRuns, listExecutions, listRuns } from "../../show/pages.ts";
import type { RecordDeps } from "../deps.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { parsePage } from "../page.ts";
import { notFound, Refusal } from "../refusal.ts";
import { createRouteBuilder } from "../route.ts";
import { people, getVisibleOwner, getSubject, submitters } from "../rule.ts";
import { requireRun } from "../require-run.ts";

const route = createRouteBuilder<RecordDeps>();

/** Routes that need only the record. Runners and coordinators learn from it which runs to stop and which runners drain. */
export const recordRoutes = [
  route("GET /runs", {
    rule: { roles: people },
    handle: ({ deps: { store }, principal, query: { limit, cursor, search, ...filter } }) =>
      search === undefined
        ? listRuns(store.read, omitUndefined(filter), parsePage("runs", limit, cursor), getVisibleOwner(principal))
        : findRuns(
            store.read,
            search,
            omitUndefined(filter),
            parsePage("search", limit, cursor),
            getVisibleOwner(principal),
          ),
  }),
  route("GET /runs/{run_id}", {
    rule: { roles: people, object: "run", attempt: true },
    handle: ({ deps, object }) => requireRun(deps.store.read, object.run_id),
  }),
  route("POST /runs/{run_id}/resume", {
    rule: { roles: submitters, object: "run" },
    async handle({ deps, principal, object: { run_id } }) {
      const [resumed] = await deps.store.apply([{ op: "resume_run", run_id, by: getSubject(principal) }]);
      const run = await deps.store.read.run(run_id);
      if (run === null || (!resumed.ok && resumed.conflict === "not_found")) throw notFound("run", "path.run_id");
      if (resumed.ok) return run;
      const waitsForAnswer = resumed.conflict === "wrong_state" && resumed.waits_for === "answer";
      throw new Refusal(
        409,
        "DROVER-API-030",
        waitsForAnswer
          ? "The run is waiting for an answer."
          : `The run is ${run.status}; only a parked run can be resumed.`,
        waitsForAnswer ? { next: "Answer its question; `drover questions` lists it." } : {},
      );
    },
  }),
  route("POST /runs/{run_id}/input", {
    rule: { roles: submitters, object: "run" },
    bodyLimit: 5 * 1024 * 1024,
    async handle({ deps, principal, object, body: { text } }) {
      const { run_id } = object;
      const [result] = await deps.store.apply([{ op: "send_input", run_id, text, by: getSubject(principal) }]);
      if (result.ok) return undefined;
      if (result.conflict === "not_found") throw notFound("run", "path.run_id");
      if (result.conflict === "no_input")
        throw new Refusal(
          409,
          "DROVER-API-033",
          `The executor ${result.executor} cannot read messages while it works.`,
          {
            next: "Wait until the run has ended, then submit the message as a new run with mode resume.",
          },
        );
      const status = result.conflict === "wrong_state" ? result.status : object.status;
      throw new Refusal(409, "DROVER-API-030", `The run is ${status}; only a running run accepts input.`, {
        next: "To continue its session, submit a new run with mode resume.",
      });
    },
  }),
  route("GET /usage", {
    rule: { roles: people },
    async handle({ deps, principal, query: { limit, ...filter } }) {
      const owner = getVisibleOwner(principal);
      return {
        items: await deps.store.read.usage(omitUndefined({ ...filter, created_by: owner ?? undefined }), limit),
      };
    },
  }),
  route("GET /executions", {
    rule: { roles: people },
    handle: ({ deps, principal, query: { limit, cursor, ...filter } }) =>
      listExecutions(
        deps.store.read,
        omitUndefined(filter),
        parsePage("executions", limit, cursor),
        getVisibleOwner(principal),
        deps.owners,
      ),
  }),
  route("GET /executions/{execution_id}", {
    rule: { roles: people, object: "execution" },
    handle: async ({ object }) => object,
  }),
  route("GET /stats", {
    rule: { roles: people },
    async handle({ deps, principal, query }) {
      const until = query.until ?? new Date().toISOString();
      const since = query.since ?? new Date(Date.parse(until) - 86_400_000).toISOString();
      return deps.store.read.stats(
        omitUndefined({ since, until, created_by: getVisibleOwner(principal) ?? undefined }),
      );
    },
  }),
  route("POST /runs/stop", {
    rule: { roles: submitters },
    async handle({ deps, principal, body: { all: _all, ...filter } }) {
      const stopped = { cancelled: [] as string[], stopping: [] as string[], untouched: [] as string[] };
      const unfinishedStatuses = (filter.status ?? runStatuses).filter(
        (status) => !hasEnded(status) && status !== "stopping",
      );
      if (unfinishedStatuses.length === 0) return stopped;
      for (let before: string | undefined; ;) {
        const page = { limit: 1000, ...(before === undefined ? {} : { before }) };
        const { items } = await listRuns(
          deps.store.read,
          { ...omitUndefined(filter), status: unfinishedStatuses },
          page,
          getVisibleOwner(principal),
        );
        if (items.length === 0) return stopped;
        const part = await stopRuns(
          deps.store,
          items.map((row) => row.run_id),
          getSubject(principal),
        );
        stopped.cancelled.push(...part.cancelled);
        stopped.stopping.push(...part.stopping);
        stopped.untouched.push(...part.untouched);
        before = items.at(-1)!.run_id;
      }
    },
  }),
  route("POST /runs/{run_id}/stop", {
    rule: { roles: submitters, object: "run", attempt: true },
    async handle({ deps, principal, object }) {
      await stopRuns(deps.store, [object.run_id], getSubject(principal));
      return requireRun(deps.store.read, object.run_id);
    },
  }),
  route("GET /runners", {
    rule: { roles: people },
    async handle({ deps, principal, query: { limit, cursor } }) {
      const { before: after } = parsePage("runners", limit, cursor);
      const owner = getVisibleOwner(principal) ?? undefined;
      const { items, more } = await deps.store.read.runner_page(omitUndefined({ limit, after, owner }));
      const last = items.at(-1);
      return { items, next_cursor: more && last ? toCursor("runners", last.runner_id) : null };
    },
  }),
  route("POST /runners/{runner_id}/drain", {
    rule: { roles: submitters, object: "runner" },
    async handle({ deps, object: { runner_id }, body }) {
      if (!(await drainRunner(deps.store, runner_id, body.draining))) throw notFound("runner", "path.runner_id");
      return undefined;
    },
  }),
];
