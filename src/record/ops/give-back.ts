import type { RunEvent } from "../../model/event.ts";
import type { FailureReason } from "../../model/states.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { claimable, freeCap, freeDirectory, freeSession } from "./freed.ts";
import { updateRun, type StoredRun } from "./run-state.ts";
import { storeEvent } from "./store-events.ts";

const selectDemand = `
  select body from demands where demand_id = ?`;
const selectMaxAttempts = `
  select max_attempts from agent_revs where agent_rev_id = ?`;

export type Lost = "requeued" | "failed" | "cancelled";

/** Back to pending, for any runner that matches. The attempt's number stays used. */
export function requeue(tx: Transaction, run: StoredRun, reason: string, failures = run.failures): void {
  storeEvent(tx, run, null, tx.now.toISOString(), { type: "status", status: "pending", reason });
  updateRun(tx, run.run_no, {
    last_n: run.last_n,
    last_seq: run.last_seq,
    status: "pending",
    failures,
    runner_id: null,
    claim_no: null,
    waiting_for: null,
    progress: null,
    claimed_at: null,
    started_at: null,
  });
  freeCap(tx, run);
  freeDirectory(tx, run);
  claimable(tx, String(tx.sql(selectDemand).get(run.demand_id)?.["body"]));
}

/** What becomes of a run whose runner can say no more of it. */
export function lose(tx: Transaction, run: StoredRun, message: string): Lost {
  if (run.status === "stopping") {
    end(tx, run, "cancelled", null, message);
    return "cancelled";
  }
  const failures = run.failures + 1;
  if (attemptsLeft(tx, run, failures)) {
    requeue(tx, run, message, failures);
    return "requeued";
  }
  end(tx, run, "failed", "runner_lost", message, failures);
  return "failed";
}

export function attemptsLeft(tx: Transaction, run: StoredRun, failures: number): boolean {
  if (run.agent_rev_id === null) return false;
  return failures < Number(tx.sql(selectMaxAttempts).get(run.agent_rev_id)?.["max_attempts"]);
}

/** The end of a run that no runner can write. */
export function end(
  tx: Transaction,
  run: StoredRun,
  status: "failed" | "cancelled",
  reason: FailureReason | null,
  error: string | null,
  failures = run.failures,
): void {
  const at = tx.now.toISOString();
  const result: RunEvent = {
    type: "result",
    status,
    reason,
    error,
    exit_code: null,
    result_text: null,
    result_data: null,
  };
  storeEvent(tx, run, null, at, result);
  updateRun(tx, run.run_no, {
    last_n: run.last_n,
    last_seq: run.last_seq,
    status,
    reason,
    error: toColumn(error),
    failures,
    waiting_for: null,
    finished_at: at,
  });
  freeCap(tx, run);
  freeDirectory(tx, run);
  freeSession(tx, run);
}
