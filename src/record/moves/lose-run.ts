import type { FailureReason } from "../../model/states.ts";
import { first, type Row, type SqlValue, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { placeInSession } from "../ops/place-run.ts";
import { move } from "./move.ts";
import { hasExpiredQuestion } from "./questions.ts";
import type { EndingRun, StoredRun } from "./stored-run.ts";

const selectMaxAttempts = `
  select max_attempts from agent_revs where agent_rev_id = ?`;

/** The saved state that a run continues from. A fork without its own state continues from its origin's. */
const selectState = `
  select saved.session_id, saved.run_id from runs join session_states saved on saved.session_id =
    coalesce((select own.session_id from session_states own where own.session_id = runs.session_id), runs.forked_from)
  where runs.run_no = ?`;

/** How many times a run with a saved state may lose its runner without using up an attempt. */
const maxFreeLosses = 3;

/** Returns a run to pending, for any matching runner. Its next attempt gets a new number. A run that was stopping ends instead. */
export function* requeue(tx: Transaction, run: StoredRun, reason: string): Work<"requeued" | "cancelled"> {
  if (run.status === "stopping") {
    if (run.asked === 1 && (yield* hasExpiredQuestion(run)))
      yield* endRun(tx, run, "failed", "approval_expired", reason);
    else yield* endRun(tx, run, "cancelled", null, reason);
    return "cancelled";
  }
  yield* returnToPending(tx, run, reason);
  return "requeued";
}

/**
 * Handles a run whose runner was lost. A run with a saved state continues from there; any other starts over, which costs
 * an attempt.
 */
export function* loseRun(tx: Transaction, run: StoredRun, reason: string): Work<"requeued" | "cancelled" | "failed"> {
  if (run.status === "stopping") return yield* requeue(tx, run, reason);
  const counters = yield* readLossCounters(run);
  if (counters !== null) {
    yield* returnToPending(tx, run, reason, counters);
    return "requeued";
  }
  yield* endRun(tx, run, "failed", "runner_lost", reason, run.failures + 1);
  return "failed";
}

/** The counters that a lost attempt increments; null if the run has no attempts left. */
export function* readLossCounters(run: StoredRun & Partial<EndingRun>): Work<Record<string, number> | null> {
  const state = run.continued < maxFreeLosses ? yield* findSavedState(run) : undefined;
  if (state?.["run_id"] === toColumn(run.run_id)) return { continued: run.continued + 1 };
  const failures = run.failures + 1;
  return (yield* hasAttemptsLeft(run, failures)) ? { failures } : null;
}

/** Returns a run to pending, for the runners that can continue from its saved state. */
export function* returnToPending(
  tx: Transaction,
  run: StoredRun,
  reason: string,
  columns: Record<string, SqlValue> = {},
): Work<void> {
  const state = yield* findSavedState(run);
  const placement = state === undefined ? null : yield* placeInSession(tx, run.run_no, String(state["session_id"]));
  const movedRun = placement?.columns == null ? run : { ...run, demand_id: placement.columns.demand_id };
  yield* move(tx, movedRun, "pending", { cause: reason, columns: { ...columns, ...placement?.columns } });
}

function* findSavedState(run: StoredRun & Partial<EndingRun>): Work<Row | undefined> {
  if (run.session_id === null || run.agent_type === "procedural") return undefined;
  return (yield first(selectState, run.run_no))[0];
}

export function* hasAttemptsLeft(run: StoredRun & Partial<EndingRun>, failures: number): Work<boolean> {
  if (run.agent_rev_id === null) return false;
  if (typeof run.max_attempts === "number") return failures < run.max_attempts;
  const [row] = yield first(selectMaxAttempts, run.agent_rev_id);
  return failures < Number(row?.["max_attempts"]);
}

/** Ends a run without a runner. */
export function* endRun(
  tx: Transaction,
  run: StoredRun,
  status: "failed" | "cancelled",
  reason: FailureReason | null,
  error: string | null,
  failures = run.failures,
): Work<void> {
  const emptyResult = { exit_code: null, result_text: null, result_data: null };
  yield* move(tx, run, status, {
    cause: { type: "result", status, reason, error, ...emptyResult },
    columns: { failures },
  });
}
