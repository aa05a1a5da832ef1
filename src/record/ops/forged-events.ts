import type { NumberedEvent, RunEvent } from "../../model/event.ts";
import { all, type Row, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { ExecutionState, Transaction } from "../transaction.ts";
import type { StoredRun } from "../moves/stored-run.ts";
import { auditForged, type Write } from "./fence.ts";

type ExecutionEvent = Extract<RunEvent, { type: "execution_started" | "execution_ended" }>;

const selectExecution = `select kind, run_id, attempt from audit_rows where execution_id = ? and kind in ('start', 'end')`;

/** Names under which a runner may decide a question itself. Decisions of people come from the store only. */
const runnerDeciders: ReadonlySet<string> = new Set(["unattended", "session", "drover"]);
const maxIdLength = 200;

/**
 * Replaces each event that the attempt may not report with an error: an end without a start of the same attempt, a second end,
 * a start with a used id, a decision in a person's name. The error keeps the event's number, so that the runner's numbering
 * stays intact. The refused events go to the audit trail.
 */
export function* replaceForgedEvents(
  tx: Transaction,
  run: StoredRun,
  events: readonly NumberedEvent[],
  op: Write,
): Work<readonly NumberedEvent[]> {
  if (!events.some(({ event }) => needsCheck(run, event))) return events;
  const checkedEvents: NumberedEvent[] = [];
  const forged: RunEvent[] = [];
  for (const numbered of events) {
    const { event } = numbered;
    const errorEvent = needsCheck(run, event) ? yield* checkEvent(tx, run, event) : null;
    if (errorEvent !== null) forged.push(event);
    checkedEvents.push(errorEvent === null ? numbered : { ...numbered, event: errorEvent });
  }
  if (forged.length > 0) auditForged(tx, run, op, forged);
  return checkedEvents;
}

/** `exec` records one execution with the id of its run, from its own process; that one is exempt. */
function needsCheck(run: StoredRun, event: RunEvent): boolean {
  if (isExecution(event)) return run.agent_rev_id !== null || event.execution.execution_id !== run.run_id;
  return event.type === "permission_decision";
}

function isExecution(event: RunEvent): event is ExecutionEvent {
  return event.type === "execution_started" || event.type === "execution_ended";
}

function* checkEvent(tx: Transaction, run: StoredRun, event: RunEvent): Work<RunEvent | null> {
  if (event.type === "permission_decision") {
    // Nobody decides a superseded question.
    if (event.decision === "superseded" || runnerDeciders.has(event.by)) return null;
    return { type: "error", code: "refused_decision", message: "A runner cannot decide in a person's name." };
  }
  if (!isExecution(event)) return null;
  const message = yield* checkExecution(tx, run, event);
  return message === null ? null : { type: "error", code: "refused_execution", message };
}

function* checkExecution(tx: Transaction, run: StoredRun, event: ExecutionEvent): Work<string | null> {
  const { execution_id } = event.execution;
  const shortId = execution_id.slice(0, maxIdLength);
  if (execution_id === "" || execution_id.length > maxIdLength || execution_id === run.run_id)
    return `A runner may not use the execution id "${shortId}".`;
  const executions = (tx.executions ??= new Map<string, ExecutionState>());
  const stored = executions.has(execution_id) ? [] : yield all(selectExecution, toColumn(execution_id));
  // Check the map again: another run of this transaction may have taken the id during the query.
  const state = executions.get(execution_id) ?? toExecutionState(stored);
  if (event.type === "execution_started") {
    if (state !== null) return `The execution id ${shortId} is already in use.`;
    executions.set(execution_id, { run_id: run.run_id, attempt: run.attempt, ended: false });
    return null;
  }
  if (state === null || state.run_id !== run.run_id || state.attempt !== run.attempt)
    return `This attempt did not start the execution ${shortId}.`;
  if (state.ended) return `The execution ${shortId} has already ended.`;
  executions.set(execution_id, { ...state, ended: true });
  return null;
}

function toExecutionState(rows: readonly Row[]): ExecutionState | null {
  const [row] = rows;
  if (row === undefined) return null;
  return {
    run_id: fromColumn(String(row["run_id"])),
    attempt: Number(row["attempt"]),
    ended: rows.some(({ kind }) => kind === "end"),
  };
}
