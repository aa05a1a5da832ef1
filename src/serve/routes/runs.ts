import type { Run } from "../../model/run.ts";
import type { RunRow } from "../../model/store.ts";
import type { RunRequest } from "../../model/run-request.ts";
import { hasEnded } from "../../model/states.ts";
import type { Problem } from "../../wire/problem.ts";
import { batchItemSchema } from "../../wire/submit-input.ts";
import { batchItemLimits, boundProblem } from "../bound-problem.ts";
import { check } from "../check.ts";
import type { ApiDeps, SubmitResult, Submitter } from "../deps.ts";
import { omitUndefined } from "../omit-undefined.ts";
import { notFound, Refusal, refusalFromFault } from "../refusal.ts";
import { Reply } from "../reply.ts";
import { createRouteBuilder } from "../route.ts";
import { people, type Principal, canSee, getSubject, submitters } from "../rule.ts";
import { requireRun } from "../require-run.ts";

const route = createRouteBuilder<ApiDeps>();

const batchLimit = 20 * 1024 * 1024;

export const runRoutes = [
  route("POST /runs", {
    rule: { roles: submitters, attempt: true },
    async handle(call) {
      const { deps, principal, body, headers } = call;
      if (principal.kind === "attempt" && body.session_id !== undefined)
        await refuseForeignSession(principal.run, body.session_id, deps);
      const request: RunRequest = {
        ...body,
        ...(await resolveParent(principal, body.parent_run_id, deps)),
        ...omitUndefined({ idempotency_key: headers["idempotency-key"] }),
      };
      return toSubmitReply(await deps.submit(request, toSubmitter(call)));
    },
  }),
  // Not allowed with an attempt's token, because the number of a run's unfinished child runs is limited.
  route("POST /runs/batch", {
    rule: { roles: submitters },
    bodyLimit: batchLimit,
    handle: submitBatch,
  }),
  route("POST /runs/{run_id}/retry", {
    rule: { roles: submitters, object: "run" },
    async handle(call) {
      const { deps, object } = call;
      if (!hasEnded(object.status)) {
        throw new Refusal(
          409,
          "DROVER-API-030",
          `The run is ${object.status}; only a run that has ended can be retried.`,
          { next: "Stop it first, or wait until it ends." },
        );
      }
      return toSubmitReply(
        await deps.submit(buildRetryRequest(await requireRun(deps.store.read, object.run_id)), toSubmitter(call)),
      );
    },
  }),
  route("GET /runs/{run_id}/why", {
    rule: { roles: people, object: "run", attempt: true },
    async handle({ deps, object }) {
      const why = isWaiting(object.status) ? await deps.dispatcher.why(object.run_id) : [];
      return { status: object.status, why };
    },
  }),
];

async function submitBatch(call: {
  deps: ApiDeps;
  principal: Principal;
  body: { runs: unknown[] };
  readonly signal: AbortSignal;
}): Promise<{ items: ({ run: Run } | { problem: Problem })[] }> {
  const { deps, principal, body } = call;
  const items: ({ run: Run } | { problem: Problem })[] = [];
  const requests = new Map<number, RunRequest>();
  const pause = deps.pauseAfterWork();
  for (const [index, item] of body.runs.entries()) {
    await pause();
    try {
      const { idempotency_key, ...request } = check(batchItemSchema, item, "body", batchItemLimits.faults);
      requests.set(index, {
        ...request,
        ...(await resolveParent(principal, request.parent_run_id, deps)),
        ...omitUndefined({ idempotency_key }),
      });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      items[index] = { problem: boundProblem(error.problem, batchItemLimits) };
    }
  }
  const results = await deps.submitMany([...requests.values()], toSubmitter(call));
  for (const [resultIndex, index] of [...requests.keys()].entries()) items[index] = toBatchItem(results[resultIndex]!);
  return { items };
}

function toBatchItem(result: SubmitResult): { run: Run } | { problem: Problem } {
  if (result.ok) return { run: result.run };
  const { problem } = refusalFromFault(result.fault);
  const faults = problem.faults.map(({ path, message }) => ({
    path: path.replace("header.idempotency-key", "body.idempotency_key"),
    message,
  }));
  return { problem: boundProblem({ ...problem, faults }, batchItemLimits) };
}

function isWaiting(status: Run["status"]): boolean {
  return status === "pending" || status === "waiting" || status === "parked";
}

function toSubmitReply(result: SubmitResult): Reply<Run> {
  if (result.ok) return new Reply(result.repeated ? 200 : 201, result.run, { location: `/runs/${result.run.run_id}` });
  throw refusalFromFault(result.fault);
}

/** For an attempt token the parent is always its own run. Other callers may name any run they can see. */
async function resolveParent(
  principal: Principal,
  parent_run_id: string | undefined,
  deps: ApiDeps,
): Promise<Partial<Pick<RunRequest, "parent_run_id" | "trigger_type">>> {
  if (principal.kind === "attempt") return { parent_run_id: principal.run.run_id, trigger_type: "agent" };
  if (parent_run_id === undefined) return {};
  const owner = await deps.owners(parent_run_id);
  if (owner === null || !canSee(principal, owner)) throw notFound("run", "body.parent_run_id");
  return { parent_run_id };
}

/** An attempt token may only continue its own session and sessions started from it, not the owner's other sessions. */
async function refuseForeignSession(run: RunRow, session_id: string, { store: { read } }: ApiDeps): Promise<void> {
  if (session_id === run.session_id) return;
  const first = (await read.versions(session_id)).at(-1);
  const parent_id = first === undefined ? null : ((await read.run_row(first.run_id))?.parent_run_id ?? null);
  const parent = parent_id === null ? null : await read.run_row(parent_id);
  if (parent !== null && (parent.run_id === run.run_id || parent.session_id === run.session_id)) return;
  throw new Refusal(404, "DROVER-SUB-003", "No such session, or it belongs to someone else.", {
    faults: [{ path: "body.session_id", message: "unknown" }],
    next: "Start a new session: omit session_id and use mode start.",
  });
}

function toSubmitter(call: { principal: Principal; signal: AbortSignal }): Submitter {
  const { principal } = call;
  return {
    subject: getSubject(principal),
    role: principal.kind === "token" ? principal.role : "user",
    ...(principal.kind === "attempt"
      ? { parentAttempt: { run_id: principal.run.run_id, attempt: principal.run.attempt } }
      : {}),
    // Created on demand, because few submissions have to wait.
    get signal() {
      return call.signal;
    },
  };
}

function buildRetryRequest(run: Run): RunRequest {
  return {
    agent_name: run.agent_name,
    parameters: run.parameters,
    mode: run.mode,
    demands: run.demands,
    priority: run.priority,
    attended: run.attended,
    trigger_type: "api",
    retry_of: run.run_id,
    ...omitUndefined({
      prompt: run.prompt ?? undefined,
      project_dir: run.project_dir ?? undefined,
      model: run.model ?? undefined,
      parent_run_id: run.parent_run_id ?? undefined,
      // A start creates a new session, and so does a fork.
      session_id: { start: undefined, resume: run.session_id, fork: run.forked_from }[run.mode] ?? undefined,
      fork_at_turn: run.fork_at_turn ?? undefined,
      task_id: run.task_id ?? undefined,
      step_id: run.step_id ?? undefined,
      tool_call_id: run.tool_call_id ?? undefined,
      worktree_id: run.worktree_id ?? undefined,
      // No repo_sha: the repository may have changed, and the runner determines it again.
    }),
  };
}
