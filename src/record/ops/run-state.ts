import type { NumberedEvent, RunEvent } from "../../model/event.ts";
import { canMove, isTerminal, type RunStatus } from "../../model/states.ts";
import { first, write, type SqlValue, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { RunPosition } from "./store-events.ts";

export interface StoredRun extends RunPosition {
  status: RunStatus;
  failures: number;
  /** As stored, as are the other texts here but run_id. */
  runner_id: string | null;
  /** By which its runner was given it. */
  claim_no: number | null;
  session_id: string | null;
  blocked_by: string | null;
  demand_id: number;
  /** null: whoever made the run runs it; no runner claims it. */
  agent_rev_id: number | null;
  given_back: number | null;
  /** Where it works alone, see ./directory.ts; null: it may share. */
  directory: string | null;
}

/** A run that is about to be written to, with the runner that has it: over a network each question is a wait. */
export interface WrittenRun extends StoredRun {
  /** null: no runner has it. Texts as stored. */
  holder_epoch: number | null;
  holder_status: string | null;
  holder_owner: string | null;
}

/** And with what its end may set free. */
export interface EndingRun extends WrittenRun {
  /** null: its agent may have any number of runs at work. */
  cap_agent: string | null;
  agent_type: string | null;
  max_attempts: number | null;
  /** 1: another run of its session waits for it. */
  awaited: number;
}

const stored = [
  "run_no",
  "run_id",
  "status",
  "attempt",
  "last_n",
  "last_seq",
  "failures",
  "runner_id",
  "claim_no",
  "session_id",
  "blocked_by",
  "demand_id",
  "agent_rev_id",
  "given_back",
  "directory",
];
export const selectStored = `
  select ${stored.join(", ")}
  from runs`;
const selectPosition = `${selectStored} where run_id = ?`;
const written = `
  ${stored.map((name) => `runs.${name}`).join(", ")},
  runners.epoch as holder_epoch, runners.status as holder_status, runners.owner as holder_owner`;
const selectWritten = `
  select ${written} from runs left join runners on runners.runner_id = runs.runner_id where run_id = ?`;
/** Of `runs` and `runners`, for an EndingRun. */
export const ending = `${written},
    (select cap_agent from demands where demands.demand_id = runs.demand_id) as cap_agent,
    (select type from agent_revs where agent_revs.agent_rev_id = runs.agent_rev_id) as agent_type,
    (select max_attempts from agent_revs where agent_revs.agent_rev_id = runs.agent_rev_id) as max_attempts,
    exists (
      select 1 from runs next where next.session_id = runs.session_id and next.status = 'pending' and next.blocked_by = 'session'
    ) as awaited`;
const selectEnding = `
  select ${ending} from runs left join runners on runners.runner_id = runs.runner_id where run_id = ?`;

export function findRun(run_id: string): Work<StoredRun | null> {
  return find(selectPosition, run_id);
}

export function findWritten(run_id: string): Work<WrittenRun | null> {
  return find(selectWritten, run_id);
}

export function findEnding(run_id: string): Work<EndingRun | null> {
  return find(selectEnding, run_id);
}

function* find<R extends StoredRun>(text: string, run_id: string): Work<R | null> {
  const [row] = yield first(text, toColumn(run_id));
  if (row === undefined) return null;
  // Each statement selects exactly the columns of its type; run_id is given back as it came, not as stored.
  return { ...(row as unknown as R), run_id };
}

/** The columns that events change, in the transaction that stores the events. */
export function columnsAfter(run: StoredRun, events: readonly NumberedEvent[]): Record<string, SqlValue> {
  const columns: Record<string, SqlValue> = { last_n: run.last_n, last_seq: run.last_seq };
  let status = run.status;
  for (const { at, event } of events) {
    if (event.type === "progress") columns["progress"] = event.percent;
    if (event.type === "usage") columns["usage"] = JSON.stringify(event.usage);
    // A run ends by finish_run alone; a move that is not in the table is a line of the log and no more.
    if (event.type === "status" && mayMove(run, status, event.status)) {
      status = event.status;
      Object.assign(columns, moved(event, at));
    }
    if (run.agent_rev_id === null) continue;
    if (event.type === "execution_ended" && event.execution.isolation !== null)
      columns["isolation"] = event.execution.isolation;
    // Whatever a runner says of a run it claimed, it says because it has begun.
    if (status === "claimed") {
      status = "running";
      Object.assign(columns, moved({ type: "status", status }, at));
    }
  }
  return columns;
}

/** A runner moves its run between working and waiting; everything else is for the store to say. */
function mayMove(run: StoredRun, from: RunStatus, to: RunStatus): boolean {
  if (!canMove(from, to) || isTerminal(to)) return false;
  return run.agent_rev_id === null || to === "running" || to === "waiting";
}

export function* updateRun(run_no: number, columns: Record<string, SqlValue>): Work<void> {
  const names = Object.keys(columns);
  const text = `update runs set ${names.map((name) => `${name} = ?`).join(", ")} where run_no = ?`;
  yield write(text, ...Object.values(columns), run_no);
}

function moved(event: Extract<RunEvent, { type: "status" }>, at: string): Record<string, SqlValue> {
  const waits = event.status === "waiting" || event.status === "parked";
  return {
    status: event.status,
    waiting_for: waits ? toColumn(event.reason ?? null) : null,
    ...(event.status === "claimed" ? { claimed_at: toColumn(at) } : {}),
    ...(event.status === "running" ? { started_at: toColumn(at) } : {}),
  };
}
