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
  session_id: string | null;
  blocked_by: string | null;
  demand_id: number;
  /** null: whoever made the run runs it; no runner claims it. */
  agent_rev_id: number | null;
  given_back: number | null;
  /** Where it works alone, see ./directory.ts; null: it may share. */
  directory: string | null;
}

export const selectStored = `
  select run_no, run_id, status, attempt, last_n, last_seq, failures, runner_id, session_id, blocked_by, demand_id,
    agent_rev_id, given_back, directory
  from runs`;
const selectPosition = `${selectStored} where run_id = ?`;

export function* findRun(run_id: string): Work<StoredRun | null> {
  const [row] = yield first(selectPosition, toColumn(run_id));
  if (row === undefined) return null;
  // The statement selects exactly these columns; run_id is given back as it came, not as stored.
  return { ...(row as unknown as StoredRun), run_id };
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
