import { BugError } from "../../model/errors.ts";
import type { NumberedEvent, ResultEvent, RunEvent } from "../../model/event.ts";
import type { Isolation } from "../../model/process.ts";
import { canMove, isBusy, isAssigned, hasEnded, type RunStatus } from "../../model/states.ts";
import { first, write, type SqlValue, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { storeEvent } from "../ops/store-events.ts";
import { endExecutions } from "./end-executions.ts";
import { storeFollowUp } from "./chain.ts";
import { notifyClaimable, releaseCap, releaseDirectory, releaseSchedule, releaseSession } from "./release.ts";
import { isWebhookEvent, notify } from "./notify.ts";
import { supersedeQuestions } from "./questions.ts";
import type { EndingRun, StoredRun } from "./stored-run.ts";

type Columns = Record<string, SqlValue>;
/**
 * Effects of moving to a status, in addition to those that src/model/states.ts defines: who holds the run, and whether it
 * counts against the cap.
 */
interface Effects {
  /** The column that gets the time of the move. */
  time?: "claimed_at" | "started_at" | "finished_at";
  sets?: Columns;
  /** The reason for the move is what the run is waiting for. */
  waits?: true;
  /** Release the next run in its directory or session, or notify the runners that could claim it. */
  releases: readonly ("directory" | "session" | "claimers")[];
}

const endEffects: Effects = { time: "finished_at", sets: { prefer_until: null }, releases: ["directory", "session"] };
const effects: Record<RunStatus, Effects> = {
  pending: {
    sets: { runner_id: null, claim_no: null, progress: null, claimed_at: null, started_at: null },
    releases: ["directory", "claimers"],
  },
  claimed: { time: "claimed_at", releases: [] },
  running: { time: "started_at", releases: [] },
  waiting: { waits: true, releases: [] },
  parked: { waits: true, sets: { runner_id: null, claim_no: null }, releases: ["directory"] },
  stopping: { releases: [] },
  completed: { ...endEffects, sets: { ...endEffects.sets, progress: 100 } },
  failed: endEffects,
  cancelled: endEffects,
};

/** The first event of a run that runners claim. */
export const submittedEvent = { type: "status", status: "pending" } as const satisfies RunEvent;

export interface Move {
  /**
   * The reason, for the log, or the result of a run that ends. Omitted if an event of the runner, which is already stored,
   * caused the move.
   */
  cause?: string | ResultEvent;
  /** Defaults to the store's clock. */
  at?: string;
  waitingFor?: string | null;
  /** The last status that the run's events led to before this move. */
  fromStatus?: RunStatus;
  columns?: Columns;
  /** The runner has already reported the ends of its executions. */
  executionsEnded?: boolean;
}

const selectDemand = `
  select body from demands where demand_id = ?`;
const upsertResult = `
  insert into run_bodies (run_no, parameters, prompt, result_text, result_data) values (?, '{}', null, ?, ?)
  on conflict (run_no) do update set result_text = excluded.result_text, result_data = excluded.result_data`;

const clearSealed = `update run_bodies set sealed = null where run_no = ?`;

/**
 * The only function that changes the status of a stored run. `run` must include the events that this operation has stored.
 */
export function* move(
  tx: Transaction,
  run: StoredRun & Partial<EndingRun>,
  to: RunStatus,
  {
    cause,
    at = tx.now.toISOString(),
    waitingFor = null,
    fromStatus = run.status,
    columns = {},
    executionsEnded = false,
  }: Move,
): Work<void> {
  if (!canMove(fromStatus, to)) throw new BugError(`run ${run.run_id} cannot go from ${fromStatus} to ${to}`);
  const { time, sets, waits, releases } = effects[to];
  const result = typeof cause === "object" ? cause : null;
  const reason = result === null ? cause : (result.error ?? to);
  if (!isAssigned(to) && !executionsEnded) yield* endExecutions(tx, run, String(reason));
  if (run.asked === 1 && closesQuestions(to)) yield* supersedeQuestions(tx, run);
  const isEnd = result !== null && hasEnded(to);
  // This stores an event, and the result has to be the last one.
  if (isEnd && run.chained === 1) yield* storeFollowUp(tx, run, result, at, getSummary(columns));
  if (cause !== undefined)
    yield* storeEvent(tx, run, null, at, result ?? { type: "status", status: to, reason: String(reason) });
  if (time === "started_at") run.started_at ??= toColumn(at);
  yield* updateRun(run, {
    ...columns,
    status: to,
    waiting_for: waits === true ? toColumn(waitingFor) : null,
    ...(time === undefined || time === "started_at" ? {} : { [time]: toColumn(at) }),
    ...sets,
    ...(run.status === "parked" ? { parked_why: null, parked_until: null } : {}),
    // `resumed` stays set until the run has started.
    ...(run.resumed === 1 && to !== "claimed" && to !== "pending" ? { resumed: 0 } : {}),
    ...(isEnd && run.sealed === 1 ? { sealed: 0 } : {}),
    ...(result === null ? {} : { reason: result.reason, error: toColumn(result.error), exit_code: result.exit_code }),
  });
  if (isEnd) {
    (tx.changes.ended ??= []).push({
      run_id: run.run_id,
      created_by: fromColumn(run.created_by),
      status: to,
      reason: result.reason,
    });
    yield* storeResult(run.run_no, result);
    if (run.sealed === 1) yield write(clearSealed, run.run_no);
  }
  if (run.agent_rev_id !== null && isWebhookEvent(to)) {
    const { reason: failure = null, error = null, exit_code = null } = result ?? {};
    const parked = { parked_why: columns["parked_why"] ?? null, parked_until: columns["parked_until"] ?? null };
    yield* notify(tx, run, to, at, { reason: failure, error, exit_code, waiting_for: waitingFor, ...parked });
  }
  if (to === "pending" && run.status !== "parked")
    (tx.changes.requeued ??= []).push({ run_id: run.run_id, lost: Number(columns["failures"] ?? 0) > run.failures });
  if (isBusy(run.status) && !isBusy(to)) yield* releaseCap(tx, run);
  if (releases.includes("directory")) yield* releaseDirectory(tx, run);
  if (releases.includes("session")) yield* releaseSession(tx, run);
  if (hasEnded(to)) yield* releaseSchedule(tx, run);
  if (releases.includes("claimers")) {
    const [demand] = yield first(selectDemand, run.demand_id);
    notifyClaimable(tx, String(demand?.["body"]), Number(columns["resumed"] ?? run.resumed) === 1);
  }
}

/** The summary that finish_run stores. */
function getSummary({ summary = null }: Columns): string | null {
  return typeof summary === "string" ? fromColumn(summary) : null;
}

/** A new attempt asks its open questions again, and a run that ends needs no answers. */
function closesQuestions(to: RunStatus): boolean {
  return to === "claimed" || to === "stopping" || hasEnded(to);
}

/**
 * Determines which status the runner's events lead to, and which columns they change. `waitsFor` comes from the open
 * questions, see ./questions.ts.
 */
export function followEvents(
  run: StoredRun,
  events: readonly NumberedEvent[],
  waitsFor: string | null | undefined,
  now: Date,
): { to: RunStatus; fromStatus: RunStatus; at: string; waitingFor: string | null; columns: Columns } {
  const columns: Columns = {};
  let [to, fromStatus, at, waitingFor] = [run.status, run.status, "", null as string | null];
  const enter = (status: RunStatus, when: string, reason: string | null): void => {
    [to, fromStatus, at, waitingFor] = [status, to, when, reason];
    const { time } = effects[status];
    if (time === "started_at") run.started_at ??= toColumn(when);
    else if (time !== undefined) columns[time] = toColumn(when);
  };
  for (const { at: reportedAt, event } of events) {
    const when = clampTime(reportedAt, run, now);
    if (event.type === "progress") columns["progress"] = event.percent;
    // Only finish_run ends a run. A status event that is not a valid move has no effect beyond the log.
    if (event.type === "status" && canRunnerMove(run, to, event.status))
      enter(event.status, when, event.reason ?? null);
    if (run.agent_rev_id === null) continue;
    // Executions reported by a command do not describe the run itself.
    const execution = findOwnExecution(event);
    // The runner knows the repository; the submitter may not.
    if (execution?.repo_sha) columns["repo_sha"] = toColumn(execution.repo_sha);
    if (execution?.isolation) columns["isolation"] = execution.isolation;
    // Any event from a claimed run means that it has started.
    if (to === "claimed") enter("running", when, null);
  }
  const last = clampTime(events.at(-1)?.at ?? "", run, now);
  if (typeof waitsFor === "string" && (to === "running" || to === "waiting")) {
    if (to === "running") enter("waiting", last, waitsFor);
    waitingFor = waitsFor;
  }
  if (waitsFor === null && to === "waiting") enter("running", last, null);
  return { to, fromStatus, at, waitingFor, columns };
}

function findOwnExecution(event: RunEvent): { repo_sha?: string | null; isolation?: Isolation | null } | null {
  if (event.type !== "execution_started" && event.type !== "execution_ended") return null;
  if (event.execution.reported_by !== undefined) return null;
  return event.type === "execution_started" ? event.execution.correlation : event.execution;
}

/** Clamps a runner's timestamp: not before the claim, not after the store's current time. */
function clampTime(reportedAt: string, { agent_rev_id, claimed_at }: StoredRun, now: Date): string {
  if (agent_rev_id === null) return reportedAt;
  const at = Date.parse(reportedAt);
  if (!(at <= now.getTime())) return now.toISOString();
  return claimed_at !== null && at < Date.parse(claimed_at) ? claimed_at : reportedAt;
}

/** A runner may only move its run between running and waiting; the store decides everything else. */
function canRunnerMove(run: StoredRun, from: RunStatus, to: RunStatus): boolean {
  if (!canMove(from, to) || hasEnded(to)) return false;
  return run.agent_rev_id === null || to === "running" || to === "waiting";
}

/** Updates columns of the run together with its position in the log. */
export function* updateRun(run: StoredRun, columns: Columns): Work<void> {
  const allColumns: Columns = { last_n: run.last_n, last_seq: run.last_seq, started_at: run.started_at, ...columns };
  const text = `update runs set ${Object.keys(allColumns)
    .map((name) => `${name} = ?`)
    .join(", ")} where run_no = ?`;
  yield write(text, ...Object.values(allColumns), run.run_no);
}

function* storeResult(run_no: number, { result_text, result_data }: ResultEvent): Work<void> {
  const data = result_data === null || result_data === undefined ? null : JSON.stringify(result_data);
  if (result_text !== null || data !== null) yield write(upsertResult, run_no, toColumn(result_text), data);
}
