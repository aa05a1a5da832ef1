import { createInterruptedEnd } from "../../model/interrupted-end.ts";
import { all, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { storeEvent } from "../ops/store-events.ts";
import type { StoredRun } from "./stored-run.ts";

const selectOpen = `
  select open_executions.execution_id from audit_rows join open_executions on open_executions.start_no = audit_rows.no
  where audit_rows.run_id = ? and audit_rows.kind = 'start' and audit_rows.attempt = ?`;

/**
 * Ends the executions of an attempt that was taken from its runner. The runner's later reports are refused, so nobody else
 * can write these ends. The recorded end says that it was not observed, and the reason.
 */
export function* endExecutions(tx: Transaction, run: StoredRun, reason: string): Work<void> {
  // An attempt without events has started nothing. The attempt of a pending or parked run has already ended.
  if (run.last_n === 0 || run.status === "pending" || run.status === "parked") return;
  const rows = yield all(selectOpen, toColumn(run.run_id), run.attempt);
  const open = new Set(rows.map((row) => fromColumn(String(row["execution_id"]))));
  // Entries of this transaction are not in the chain yet.
  for (const { kind, run_id, attempt, execution_id } of tx.audit) {
    if (run_id !== run.run_id || attempt !== run.attempt || execution_id === null) continue;
    if (kind === "start") open.add(execution_id);
    if (kind === "end") open.delete(execution_id);
  }
  const at = tx.now.toISOString();
  for (const execution_id of open) {
    const execution = createInterruptedEnd(execution_id, at, `The end was not observed: ${reason}`);
    yield* storeEvent(tx, run, null, at, { type: "execution_ended", execution });
  }
}
