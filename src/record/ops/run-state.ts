import type { NumberedEvent, RunEvent } from "../../model/event.ts";
import { canMove, isTerminal, type RunStatus } from "../../model/states.ts";
import type { SqlValue } from "../sqlite/driver.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import type { RunPosition } from "./store-events.ts";

export interface StoredRun extends RunPosition {
  status: RunStatus;
}

const selectPosition = `
  select run_no, run_id, status, attempt, last_n, last_seq from runs where run_id = ?`;

export function findRun(tx: Transaction, run_id: string): StoredRun | null {
  const row = tx.sql(selectPosition).get(toColumn(run_id));
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
    if (event.type === "status" && canMove(status, event.status) && !isTerminal(event.status)) {
      status = event.status;
      Object.assign(columns, moved(event, at));
    }
  }
  return columns;
}

export function updateRun(tx: Transaction, run_no: number, columns: Record<string, SqlValue>): void {
  const names = Object.keys(columns);
  tx.sql(`update runs set ${names.map((name) => `${name} = ?`).join(", ")} where run_no = ?`).run(
    ...Object.values(columns),
    run_no,
  );
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
