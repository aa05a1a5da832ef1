import type { DispatchResult, LeaveRunner } from "../../model/dispatch-ops.ts";
import { fromColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { unmatchRunner } from "./demands.ts";
import { end, lose, requeue } from "./give-back.ts";
import { heldRuns } from "./held-runs.ts";
import { speaking, type StoredRunner } from "./runner-row.ts";

const setLost = `update runners set status = 'lost' where runner_id = ?`;
const deleteAgents = `delete from runner_agents where runner_id = ?`;
const deleteOrders = `delete from orders where runner_id = ?`;
const deleteClaims = `delete from claims where runner_id = ?`;
const deleteRunner = `delete from runners where runner_id = ?`;

/** From here on it has to register again. Its runs are dealt with by loseRunsOf. */
export function markLost(tx: Transaction, column: string): void {
  tx.sql(setLost).run(column);
  forget(tx, column);
}

export function lostMessage(column: string): string {
  return `Its runner ${fromColumn(column)} was lost.`;
}

/** Everything at once, for a runner that is being replaced. */
export function loseRunner(tx: Transaction, { column }: StoredRunner): void {
  markLost(tx, column);
  for (const run of heldRuns(tx, column)) lose(tx, run, lostMessage(column));
}

export function leaveRunner(tx: Transaction, op: LeaveRunner): DispatchResult {
  const runner = speaking(tx, op);
  if (typeof runner === "string") return { ok: false, conflict: runner };
  const requeued: string[] = [];
  for (const run of heldRuns(tx, runner.column)) {
    if (run.status === "stopping") {
      end(tx, run, "cancelled", null, `Its runner ${op.runner_id} left.`);
      continue;
    }
    requeue(tx, run, `Its runner ${op.runner_id} left.`);
    requeued.push(run.run_id);
  }
  forget(tx, runner.column);
  tx.sql(deleteRunner).run(runner.column);
  return { ok: true, op: "leave_runner", requeued };
}

function forget(tx: Transaction, column: string): void {
  unmatchRunner(tx, column);
  for (const text of [deleteAgents, deleteOrders, deleteClaims]) tx.sql(text).run(column);
}
