import type { RunEvent } from "../../model/event.ts";
import type { FailureReason } from "../../model/states.ts";
import { first, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { endExecutions } from "./end-executions.ts";
import { claimable, freeCap, freeDirectory, freeSession } from "./freed.ts";
import { updateRun, type EndingRun, type StoredRun } from "./run-state.ts";
import { storeEvent } from "./store-events.ts";

const selectDemand = `
  select body from demands where demand_id = ?`;
const selectMaxAttempts = `
  select max_attempts from agent_revs where agent_rev_id = ?`;

export type Lost = "requeued" | "failed" | "cancelled";

/** Back to pending, for any runner that matches. The attempt's number stays used. */
export function* requeue(tx: Transaction, run: StoredRun, reason: string, failures = run.failures): Work<void> {
  yield* endExecutions(tx, run, reason);
  yield* storeEvent(tx, run, null, tx.now.toISOString(), { type: "status", status: "pending", reason });
  yield* updateRun(run.run_no, {
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
  (tx.changed.requeued ??= []).push({ run_id: run.run_id, lost: failures > run.failures });
  yield* freeCap(tx, run);
  yield* freeDirectory(tx, run);
  const [demand] = yield first(selectDemand, run.demand_id);
  claimable(tx, String(demand?.["body"]));
}

/** What becomes of a run whose runner can say no more of it. */
export function* lose(tx: Transaction, run: StoredRun, message: string): Work<Lost> {
  if (run.status === "stopping") {
    yield* end(tx, run, "cancelled", null, message);
    return "cancelled";
  }
  const failures = run.failures + 1;
  if (yield* attemptsLeft(run, failures)) {
    yield* requeue(tx, run, message, failures);
    return "requeued";
  }
  yield* end(tx, run, "failed", "runner_lost", message, failures);
  return "failed";
}

export function* attemptsLeft(run: StoredRun & Partial<EndingRun>, failures: number): Work<boolean> {
  if (run.agent_rev_id === null) return false;
  if (typeof run.max_attempts === "number") return failures < run.max_attempts;
  const [row] = yield first(selectMaxAttempts, run.agent_rev_id);
  return failures < Number(row?.["max_attempts"]);
}

/** The end of a run that no runner can write. */
export function* end(
  tx: Transaction,
  run: StoredRun,
  status: "failed" | "cancelled",
  reason: FailureReason | null,
  error: string | null,
  failures = run.failures,
): Work<void> {
  yield* endExecutions(tx, run, error ?? status);
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
  yield* storeEvent(tx, run, null, at, result);
  yield* updateRun(run.run_no, {
    last_n: run.last_n,
    last_seq: run.last_seq,
    status,
    reason,
    error: toColumn(error),
    failures,
    waiting_for: null,
    finished_at: at,
  });
  (tx.changed.ended ??= []).push({ run_id: run.run_id, status, reason });
  yield* freeCap(tx, run);
  yield* freeDirectory(tx, run);
  yield* freeSession(tx, run);
}
