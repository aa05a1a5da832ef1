import { BugError } from "../../model/errors.ts";
import type { NumberedEvent, RunEvent } from "../../model/event.ts";
import type { Isolation } from "../../model/process.ts";
import { canMove, isBusy, isHeld, isTerminal, type RunStatus } from "../../model/states.ts";
import { first, write, type SqlValue, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { storeEvent } from "../ops/store-events.ts";
import { endExecutions } from "./end-executions.ts";
import { chainOn } from "./chain.ts";
import { claimable, freeCap, freeDirectory, freeSchedule, freeSession } from "./freed.ts";
import { isNotified, notify } from "./notify.ts";
import { supersede } from "./questions.ts";
import type { EndingRun, StoredRun } from "./stored-run.ts";

type Columns = Record<string, SqlValue>;
type Result = Extract<RunEvent, { type: "result" }>;

/** What a move to a status does, beyond what follows from the model: who holds the run, and whether it takes a place under the cap. */
interface Effects {
  /** The column that gets the time of the move. */
  time?: "claimed_at" | "started_at" | "finished_at";
  sets?: Columns;
  /** The reason of the move is what the run waits for. */
  waits?: true;
  /** Who is let go: the next run in its directory, the next of its session, a runner that could claim it. */
  frees: readonly ("directory" | "session" | "claimers")[];
}

const ended: Effects = { time: "finished_at", sets: { prefer_until: null }, frees: ["directory", "session"] };
const effects: Record<RunStatus, Effects> = {
  pending: {
    sets: { runner_id: null, claim_no: null, progress: null, claimed_at: null, started_at: null },
    frees: ["directory", "claimers"],
  },
  claimed: { time: "claimed_at", frees: [] },
  running: { time: "started_at", frees: [] },
  waiting: { waits: true, frees: [] },
  parked: { waits: true, sets: { runner_id: null, claim_no: null }, frees: ["directory"] },
  stopping: { frees: [] },
  completed: { ...ended, sets: { ...ended.sets, progress: 100 } },
  failed: ended,
  cancelled: ended,
};

/** How a run begins that runners claim. */
export const submitted = { type: "status", status: "pending" } as const satisfies RunEvent;

export interface Move {
  /** Why, for the log; or, where the run ends, its result. Absent: an event of its runner made the move, and is stored. */
  why?: string | Result;
  /** By the store's clock unless told otherwise. */
  at?: string;
  waitingFor?: string | null;
  /** The last of the states that its events took it through on the way. */
  via?: RunStatus;
  columns?: Columns;
  /** Its runner has seen to the ends of its executions. */
  settled?: boolean;
}

const selectDemand = `
  select body from demands where demand_id = ?`;
const upsertResult = `
  insert into run_bodies (run_no, parameters, prompt, result_text, result_data) values (?, '{}', null, ?, ?)
  on conflict (run_no) do update set result_text = excluded.result_text, result_data = excluded.result_data`;

const forgetSealed = `update run_bodies set sealed = null where run_no = ?`;

/** The only way a stored run gets another status. `run` is as stored, moved on by the events that were stored since. */
export function* move(
  tx: Transaction,
  run: StoredRun & Partial<EndingRun>,
  to: RunStatus,
  { why, at = tx.now.toISOString(), waitingFor = null, via = run.status, columns = {}, settled = false }: Move,
): Work<void> {
  if (!canMove(via, to)) throw new BugError(`run ${run.run_id} cannot go from ${via} to ${to}`);
  const { time, sets, waits, frees } = effects[to];
  const result = typeof why === "object" ? why : null;
  const reason = result === null ? why : (result.error ?? to);
  if (!isHeld(to) && !settled) yield* endExecutions(tx, run, String(reason));
  if (run.asked === 1 && closesQuestions(to)) yield* supersede(tx, run);
  const ends = result !== null && isTerminal(to);
  // before the result, which is the last event
  if (ends && run.chained === 1) yield* chainOn(tx, run, result, at, summaryIn(columns));
  if (why !== undefined)
    yield* storeEvent(tx, run, null, at, result ?? { type: "status", status: to, reason: String(reason) });
  if (time === "started_at") run.started_at ??= toColumn(at);
  yield* updateRun(run, {
    ...columns,
    status: to,
    waiting_for: waits === true ? toColumn(waitingFor) : null,
    ...(time === undefined || time === "started_at" ? {} : { [time]: toColumn(at) }),
    ...sets,
    ...(run.status === "parked" ? { parked_why: null, parked_until: null } : {}),
    // What goes on at once does so until it is at work.
    ...(run.resumed === 1 && to !== "claimed" && to !== "pending" ? { resumed: 0 } : {}),
    ...(ends && run.sealed === 1 ? { sealed: 0 } : {}),
    ...(result === null ? {} : { reason: result.reason, error: toColumn(result.error), exit_code: result.exit_code }),
  });
  if (ends) {
    (tx.changed.ended ??= []).push({
      run_id: run.run_id,
      created_by: fromColumn(run.created_by),
      status: to,
      reason: result.reason,
    });
    yield* storeResult(run.run_no, result);
    if (run.sealed === 1) yield write(forgetSealed, run.run_no);
  }
  if (run.agent_rev_id !== null && isNotified(to)) {
    const { reason: failure = null, error = null, exit_code = null } = result ?? {};
    const parked = { parked_why: columns["parked_why"] ?? null, parked_until: columns["parked_until"] ?? null };
    yield* notify(tx, run, to, at, { reason: failure, error, exit_code, waiting_for: waitingFor, ...parked });
  }
  if (to === "pending" && run.status !== "parked")
    (tx.changed.requeued ??= []).push({ run_id: run.run_id, lost: Number(columns["failures"] ?? 0) > run.failures });
  if (isBusy(run.status) && !isBusy(to)) yield* freeCap(tx, run);
  if (frees.includes("directory")) yield* freeDirectory(tx, run);
  if (frees.includes("session")) yield* freeSession(tx, run);
  if (isTerminal(to)) yield* freeSchedule(tx, run);
  if (frees.includes("claimers")) {
    const [demand] = yield first(selectDemand, run.demand_id);
    claimable(tx, String(demand?.["body"]), Number(columns["resumed"] ?? run.resumed) === 1);
  }
}

/** As finish_run brings it. */
function summaryIn({ summary = null }: Columns): string | null {
  return typeof summary === "string" ? fromColumn(summary) : null;
}

/** A new attempt asks again what is still open; whoever is ended needs no answer. */
function closesQuestions(to: RunStatus): boolean {
  return to === "claimed" || to === "stopping" || isTerminal(to);
}

/**
 * Where its own events take a run, in the transaction that stores them; and the columns that they change besides.
 * `waitsFor` is what its open questions say, see ./questions.ts.
 */
export function follow(
  run: StoredRun,
  events: readonly NumberedEvent[],
  waitsFor: string | null | undefined,
  now: Date,
): { to: RunStatus; via: RunStatus; at: string; waitingFor: string | null; columns: Columns } {
  const columns: Columns = {};
  let [to, via, at, waitingFor] = [run.status, run.status, "", null as string | null];
  const enter = (status: RunStatus, when: string, why: string | null): void => {
    [to, via, at, waitingFor] = [status, to, when, why];
    const { time } = effects[status];
    if (time === "started_at") run.started_at ??= toColumn(when);
    else if (time !== undefined) columns[time] = toColumn(when);
  };
  for (const { at: given, event } of events) {
    const when = plausible(given, run, now);
    if (event.type === "progress") columns["progress"] = event.percent;
    // A run ends by finish_run alone; a move that is not in the table is a line of the log and no more.
    if (event.type === "status" && mayMove(run, to, event.status)) enter(event.status, when, event.reason ?? null);
    if (run.agent_rev_id === null) continue;
    // what a command says of others is nothing that the run itself is known by
    const execution = ownExecution(event);
    // the runner knows the repository; the submitter may not
    if (execution?.repo_sha) columns["repo_sha"] = toColumn(execution.repo_sha);
    if (execution?.isolation) columns["isolation"] = execution.isolation;
    // Whatever a runner says of a run it claimed, it says because it has begun.
    if (to === "claimed") enter("running", when, null);
  }
  const last = plausible(events.at(-1)?.at ?? "", run, now);
  if (typeof waitsFor === "string" && (to === "running" || to === "waiting")) {
    if (to === "running") enter("waiting", last, waitsFor);
    waitingFor = waitsFor;
  }
  if (waitsFor === null && to === "waiting") enter("running", last, null);
  return { to, via, at, waitingFor, columns };
}

function ownExecution(event: RunEvent): { repo_sha?: string | null; isolation?: Isolation | null } | null {
  if (event.type !== "execution_started" && event.type !== "execution_ended") return null;
  if (event.execution.reported_by !== undefined) return null;
  return event.type === "execution_started" ? event.execution.correlation : event.execution;
}

/** The time that a runner gives, or the nearest that can be: not before it claimed the run, not after the store hears of it. */
function plausible(given: string, { agent_rev_id, claimed_at }: StoredRun, now: Date): string {
  if (agent_rev_id === null) return given;
  const at = Date.parse(given);
  if (!(at <= now.getTime())) return now.toISOString();
  return claimed_at !== null && at < Date.parse(claimed_at) ? claimed_at : given;
}

/** A runner moves its run between working and waiting; everything else is for the store to say. */
function mayMove(run: StoredRun, from: RunStatus, to: RunStatus): boolean {
  if (!canMove(from, to) || isTerminal(to)) return false;
  return run.agent_rev_id === null || to === "running" || to === "waiting";
}

/** With how far the run has come. */
export function* updateRun(run: StoredRun, columns: Columns): Work<void> {
  const all: Columns = { last_n: run.last_n, last_seq: run.last_seq, started_at: run.started_at, ...columns };
  const text = `update runs set ${Object.keys(all)
    .map((name) => `${name} = ?`)
    .join(", ")} where run_no = ?`;
  yield write(text, ...Object.values(all), run.run_no);
}

function* storeResult(run_no: number, { result_text, result_data }: Result): Work<void> {
  const data = result_data === null || result_data === undefined ? null : JSON.stringify(result_data);
  if (result_text !== null || data !== null) yield write(upsertResult, run_no, toColumn(result_text), data);
}
