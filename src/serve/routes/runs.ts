import { z } from "zod";
import type { Run } from "../../model/run.ts";
import type { RunRequest } from "../../model/run-request.ts";
import { isTerminal, runStatuses } from "../../model/states.ts";
import { listRuns } from "../../show/pages.ts";
import {
  pageOf,
  runRowSchema,
  runSchema,
  runsQuerySchema,
  stoppedSchema,
  stopRunsSchema,
  submitSchema,
  whySchema,
} from "../../wire/schemas.ts";
import type { ServeDeps, SubmitAnswer } from "../deps.ts";
import { pageFrom } from "../page.ts";
import { notFound, Refusal } from "../refusal.ts";
import { json, route } from "../route.ts";
import { anyone, type Principal, sees, seesOnly, subjectOf, submitters } from "../rule.ts";

export const runRoutes = [
  route({
    method: "post",
    path: "/runs",
    rule: { roles: submitters, attempt: true },
    summary: "Submit a run",
    headers: z.object({ "idempotency-key": z.string().min(1).max(200).optional() }),
    body: submitSchema,
    answers: {
      200: { description: "This Idempotency-Key was used before: the run it made", schema: runSchema },
      201: { description: "The run", schema: runSchema },
    },
    async handle({ deps, principal, body, headers }) {
      const key = headers["idempotency-key"];
      const request: RunRequest = {
        ...body,
        ...(await parentOf(principal, body.parent_run_id, deps)),
        ...(typeof key === "string" ? { idempotency_key: key } : {}),
      };
      return submitted(await deps.submit(request, whoOf(principal)));
    },
  }),
  route({
    method: "get",
    path: "/runs",
    rule: { roles: anyone },
    summary: "List runs, newest first",
    query: runsQuerySchema,
    answers: { 200: { description: "A page of runs, without parameters and results", schema: pageOf(runRowSchema) } },
    async handle({ deps, principal, query: { limit, cursor, ...filter } }) {
      return json(await listRuns(deps.store.read, given(filter), pageFrom("runs", limit, cursor), seesOnly(principal)));
    },
  }),
  route({
    method: "post",
    path: "/runs/stop",
    rule: { roles: submitters },
    summary: "Stop every run that fits a filter",
    body: stopRunsSchema,
    answers: { 200: { description: "What became of them", schema: stoppedSchema } },
    async handle({ deps, principal, body: { all: _all, ...filter } }) {
      const stopped = { cancelled: [] as string[], stopping: [] as string[], untouched: [] as string[] };
      const open = (filter.status ?? runStatuses).filter((status) => !isTerminal(status) && status !== "stopping");
      if (open.length === 0) return json(stopped);
      for (let before: string | undefined; ;) {
        const page = { limit: 1000, ...(before === undefined ? {} : { before }) };
        const { items } = await listRuns(
          deps.store.read,
          { ...given(filter), status: open },
          page,
          seesOnly(principal),
        );
        if (items.length === 0) return json(stopped);
        const part = await deps.dispatcher.stopRuns(
          items.map((row) => row.run_id),
          subjectOf(principal),
        );
        stopped.cancelled.push(...part.cancelled);
        stopped.stopping.push(...part.stopping);
        stopped.untouched.push(...part.untouched);
        before = items.at(-1)!.run_id;
      }
    },
  }),
  route({
    method: "get",
    path: "/runs/{run_id}",
    rule: { roles: anyone, object: "run", attempt: true },
    summary: "One run, whole",
    answers: { 200: { description: "The run", schema: runSchema } },
    handle: async ({ object }) => json(object),
  }),
  route({
    method: "post",
    path: "/runs/{run_id}/stop",
    rule: { roles: submitters, object: "run" },
    summary: "Stop a run",
    answers: {
      200: { description: "The run, cancelled or stopping; a run that has ended is left as it is", schema: runSchema },
    },
    async handle({ deps, principal, object }) {
      await deps.dispatcher.stopRuns([object.run_id], subjectOf(principal));
      return json(await deps.store.read.run(object.run_id));
    },
  }),
  route({
    method: "post",
    path: "/runs/{run_id}/retry",
    rule: { roles: submitters, object: "run" },
    summary: "Submit the same again, as a new run",
    answers: { 201: { description: "The new run", schema: runSchema } },
    async handle({ deps, principal, object }) {
      if (!isTerminal(object.status)) {
        throw new Refusal(
          409,
          "DROVER-API-030",
          `The run is ${object.status}: only one that has ended can be retried.`,
          { next: "Stop it first, or wait." },
        );
      }
      return submitted(await deps.submit(sameAgain(object), whoOf(principal)));
    },
  }),
  route({
    method: "get",
    path: "/runs/{run_id}/why",
    rule: { roles: anyone, object: "run" },
    summary: "What keeps a run pending",
    answers: { 200: { description: "Each unmet demand; empty where nothing is in its way", schema: whySchema } },
    async handle({ deps, object }) {
      return json({
        status: object.status,
        why: object.status === "pending" ? await deps.dispatcher.why(object.run_id) : [],
      });
    },
  }),
];

function submitted(answer: SubmitAnswer): Response {
  if (answer.ok) {
    const response = json(answer.run, answer.repeated ? 200 : 201);
    response.headers.set("location", `/runs/${answer.run.run_id}`);
    return response;
  }
  const { status, code, message, faults, next } = answer.fault;
  throw new Refusal(status, code, message, { faults, ...(next ? { next } : {}) });
}

/** Inside a run, its own id is the parent whatever is said; others may only name a run they see. */
async function parentOf(
  principal: Principal,
  parent_run_id: string | undefined,
  deps: ServeDeps,
): Promise<Pick<RunRequest, "parent_run_id" | "trigger_type">> {
  if (principal.kind === "attempt") return { parent_run_id: principal.run.run_id, trigger_type: "agent" };
  if (parent_run_id === undefined) return { trigger_type: "api" };
  const owner = await deps.owners(parent_run_id);
  if (owner === null || !sees(principal, owner)) throw notFound("run", "body.parent_run_id");
  return { parent_run_id, trigger_type: "api" };
}

function whoOf(principal: Principal): { subject: string; role: "admin" | "user" | "viewer" | "runner" } {
  return { subject: subjectOf(principal), role: principal.kind === "token" ? principal.role : "user" };
}

function sameAgain(run: Run): RunRequest {
  return {
    agent_name: run.agent_name,
    parameters: run.parameters,
    mode: run.mode,
    demands: run.demands,
    priority: run.priority,
    attended: run.attended,
    trigger_type: "api",
    retry_of: run.run_id,
    ...given({
      prompt: run.prompt ?? undefined,
      project_dir: run.project_dir ?? undefined,
      parent_run_id: run.parent_run_id ?? undefined,
      // a start gets a session of its own, and so does a fork
      session_id: { start: undefined, resume: run.session_id, fork: run.forked_from }[run.mode] ?? undefined,
      task_id: run.task_id ?? undefined,
      step_id: run.step_id ?? undefined,
      tool_call_id: run.tool_call_id ?? undefined,
      worktree_id: run.worktree_id ?? undefined,
      repo_sha: run.repo_sha ?? undefined,
    }),
  };
}

/** Without the keys that are undefined: to the model, absent and undefined are not the same. */
function given<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  // exactly the keys whose value is undefined are gone
  return Object.fromEntries(Object.entries(value).filter(([, one]) => one !== undefined)) as {
    [K in keyof T]: Exclude<T[K], undefined>;
  };
}
