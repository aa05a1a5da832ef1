import type { DispatchResult, LeaveRunner } from "../../model/dispatch-ops.ts";
import { write, type Work } from "../query.ts";
import { fromColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { unmatchRunner } from "./demands.ts";
import { loseRun, requeue } from "../moves/lose-run.ts";
import { findAssignedRuns } from "./assigned-runs.ts";
import { findCallingRunner, type StoredRunner } from "./runner-row.ts";

const setLost = `update runners set status = 'lost' where runner_id = ?`;
const deleteAgents = `delete from runner_agents where runner_id = ?`;
const deleteOrders = `delete from orders where runner_id = ?`;
const deleteClaims = `delete from claims where runner_id = ?`;
const deleteRunner = `delete from runners where runner_id = ?`;

/** Marks a runner as lost, so that it has to register again. Its runs are released separately. */
export function* markLost(tx: Transaction, storedId: string): Work<void> {
  yield write(setLost, storedId);
  yield* deleteRunnerRows(tx, storedId);
}

export function formatLostMessage(storedId: string): string {
  return `Its runner ${fromColumn(storedId)} was lost.`;
}

/** Marks a runner as lost and releases all its runs, because another process replaces it. */
export function* loseRunner(tx: Transaction, { storedId }: StoredRunner): Work<void> {
  yield* markLost(tx, storedId);
  for (const run of yield* findAssignedRuns(storedId)) yield* loseRun(tx, run, formatLostMessage(storedId));
}

export function* leaveRunner(tx: Transaction, op: LeaveRunner): Work<DispatchResult> {
  const runner = yield* findCallingRunner(op);
  if (typeof runner === "string") return { ok: false, conflict: runner };
  const requeued: string[] = [];
  const message = `Its runner ${op.runner_id} left.`;
  // No other runner may take the runs of a runner that only takes pinned runs.
  const release = runner.row["only_pinned"] === 1 ? loseRun : requeue;
  for (const run of yield* findAssignedRuns(runner.storedId))
    if ((yield* release(tx, run, message)) === "requeued") requeued.push(run.run_id);
  yield* deleteRunnerRows(tx, runner.storedId);
  yield write(deleteRunner, runner.storedId);
  return { ok: true, op: "leave_runner", requeued };
}

function* deleteRunnerRows(tx: Transaction, storedId: string): Work<void> {
  yield* unmatchRunner(tx, storedId);
  for (const text of [deleteAgents, deleteOrders, deleteClaims]) yield write(text, storedId);
}
