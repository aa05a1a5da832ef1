import type { DispatchResult, StopRuns } from "../../model/dispatch-ops.ts";
import { isAssigned, hasEnded } from "../../model/states.ts";
import type { Work } from "../query.ts";
import { fromColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { endRun } from "../moves/lose-run.ts";
import { move } from "../moves/move.ts";
import { sendOrder } from "./orders.ts";
import { findEndingRun, type StoredRun } from "../moves/stored-run.ts";

export function* stopRuns(tx: Transaction, op: StopRuns): Work<DispatchResult> {
  const result = { cancelled: [] as string[], stopping: [] as string[], untouched: [] as string[] };
  const runners = new Set<string>();
  for (const run_id of op.run_ids) {
    const run = yield* findEndingRun(run_id);
    const outcome = run === null || run.agent_rev_id === null ? "untouched" : yield* stopRun(tx, run, op);
    result[outcome].push(run_id);
    if (outcome === "stopping" && typeof run?.runner_id === "string") runners.add(fromColumn(run.runner_id));
  }
  return { ok: true, op: "stop_runs", ...result, runners: [...runners] };
}

function* stopRun(
  tx: Transaction,
  run: StoredRun,
  { reason, by }: StopRuns,
): Work<"cancelled" | "stopping" | "untouched"> {
  const message = `Stopped by ${by}.`;
  if (run.status === "stopping" || hasEnded(run.status)) return "untouched";
  if (!isAssigned(run.status)) {
    yield* endRun(tx, run, "cancelled", null, message);
    return "cancelled";
  }
  if (!(yield* sendOrder(tx, run, { stop: reason }))) return "untouched";
  yield* move(tx, run, "stopping", { cause: message });
  return "stopping";
}
