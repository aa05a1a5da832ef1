import type { DispatchResult, StopRuns } from "../../model/dispatch-ops.ts";
import { isHeld, isTerminal } from "../../model/states.ts";
import type { Work } from "../query.ts";
import { fromColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { end } from "../moves/lose-run.ts";
import { move } from "../moves/move.ts";
import { giveOrder } from "./orders.ts";
import { findEnding, type StoredRun } from "../moves/stored-run.ts";

export function* stopRuns(tx: Transaction, op: StopRuns): Work<DispatchResult> {
  const result = { cancelled: [] as string[], stopping: [] as string[], untouched: [] as string[] };
  const runners = new Set<string>();
  for (const run_id of op.run_ids) {
    const run = yield* findEnding(run_id);
    const done = run === null || run.agent_rev_id === null ? "untouched" : yield* stopOne(tx, run, op);
    result[done].push(run_id);
    if (done === "stopping" && typeof run?.runner_id === "string") runners.add(fromColumn(run.runner_id));
  }
  return { ok: true, op: "stop_runs", ...result, runners: [...runners] };
}

function* stopOne(
  tx: Transaction,
  run: StoredRun,
  { reason, by }: StopRuns,
): Work<"cancelled" | "stopping" | "untouched"> {
  const why = `Stopped by ${by}.`;
  if (run.status === "stopping" || isTerminal(run.status)) return "untouched";
  if (!isHeld(run.status)) {
    yield* end(tx, run, "cancelled", null, why);
    return "cancelled";
  }
  if (!(yield* giveOrder(tx, run, { stop: reason }))) return "untouched";
  yield* move(tx, run, "stopping", { why });
  return "stopping";
}
