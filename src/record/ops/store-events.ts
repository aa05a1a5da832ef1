import { BugError } from "../../model/errors.ts";
import type { NumberedEvent, RunEvent } from "../../model/event.ts";
import type { AuditEntry } from "../audit/chain.ts";
import { write, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";

/** The position in a run's log. Operations advance it as they store events. */
export interface RunPosition {
  run_no: number;
  run_id: string;
  attempt: number;
  last_n: number;
  last_seq: number;
  /** As stored, like `created_at`. */
  parent_run_id: string | null;
  created_at: string;
}

const insertEvent = `
  insert into events (run_no, seq, attempt, n, at, body, received_at) values (?, ?, ?, ?, ?, ?, ?)`;

/** Returns the events that are not stored yet, or null if there is a gap after the last stored event. */
export function selectNewEvents(events: readonly NumberedEvent[], last_n: number): readonly NumberedEvent[] | null {
  const unstored = events.filter((event) => event.n > last_n);
  return unstored.every((event, index) => event.n === last_n + 1 + index) ? unstored : null;
}

/** Stores events of the current attempt and advances the position. */
export function* storeEvents(tx: Transaction, run: RunPosition, events: readonly NumberedEvent[]): Work<void> {
  for (const { n, at, event } of events) {
    if (event.type === "result") throw new BugError("only finish_run may store a result event");
    yield* storeEvent(tx, run, n, at, event);
    run.last_n = n;
  }
}

export function* storeEvent(
  tx: Transaction,
  run: RunPosition,
  n: number | null,
  at: string,
  event: RunEvent,
): Work<void> {
  run.last_seq += 1;
  const body = JSON.stringify(event);
  yield write(insertEvent, run.run_no, run.last_seq, run.attempt, n, toColumn(at), body, tx.now.getTime());
  tx.changes.runs.add(run.run_id);
  const entry = createAuditEntry(run, at, event);
  if (entry === null) return;
  tx.audit.push(entry);
  const { execution_id, kind } = entry;
  if (execution_id !== null)
    (tx.executions ??= new Map()).set(execution_id, {
      run_id: run.run_id,
      attempt: run.attempt,
      ended: kind === "end",
    });
}

/**
 * What the start of an execution seals about its run besides the execution itself. The table of runs is not sealed.
 * Missing in rows of earlier versions.
 */
export interface SealedRunFields {
  parent_run_id: string | null;
  created_at: string;
}

function createAuditEntry(run: RunPosition, at: string, event: RunEvent): AuditEntry | null {
  if (event.type !== "execution_started" && event.type !== "execution_ended") return null;
  const { execution } = event;
  const isStart = event.type === "execution_started";
  return {
    kind: isStart ? "start" : "end",
    execution_id: execution.execution_id,
    run_id: run.run_id,
    attempt: run.attempt,
    at,
    body: JSON.stringify(isStart ? { ...execution, run: toSealedFields(run) } : execution),
  };
}

function toSealedFields({ parent_run_id, created_at }: RunPosition): SealedRunFields {
  return {
    parent_run_id: parent_run_id === null ? null : fromColumn(parent_run_id),
    created_at: fromColumn(created_at),
  };
}
