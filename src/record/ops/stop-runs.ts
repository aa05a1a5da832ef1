import type { DispatchResult, StopRuns } from "../../model/dispatch-ops.ts";
import type { Work } from "../query.ts";
import { fromColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { end } from "./give-back.ts";
import { giveOrder } from "./orders.ts";
import { findEnding, updateRun, type StoredRun } from "./run-state.ts";
import { storeEvent } from "./store-events.ts";

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
  switch (run.status) {
    case "pending":
    case "parked":
      yield* end(tx, run, "cancelled", null, `Stopped by ${by}.`);
      return "cancelled";
    case "claimed":
    case "running":
    case "waiting":
      if (!(yield* giveOrder(tx, run, { stop: reason }))) return "untouched";
      yield* storeEvent(tx, run, null, tx.now.toISOString(), {
        type: "status",
        status: "stopping",
        reason: `Stopped by ${by}.`,
      });
      yield* updateRun(run.run_no, { last_seq: run.last_seq, status: "stopping", waiting_for: null });
      return "stopping";
    case "stopping":
    case "completed":
    case "failed":
    case "cancelled":
      return "untouched";
    default:
      return run.status satisfies never;
  }
}
