import type { ClaimedRun } from "../../model/dispatch-ops.ts";
import { first, write, type Work } from "../query.ts";
import { fromColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { claimedRun, selectInvocation } from "./invocation.ts";
import type { Head } from "./pick-runs.ts";
import type { StoredRunner } from "./runner-row.ts";
import { storeEvent } from "./store-events.ts";

const claim = `
  update runs set status = 'claimed', attempt = ?, last_n = 0, last_seq = ?, runner_id = ?, claim_no = ?, claimed_at = ?
  where run_no = ?`;
const placeSession = `
  update sessions set hostname = ?, executor_profile = ?, runner_id = ? where session_id = ?`;

/** From here on the run is this runner's, under a new attempt. */
export function* handOut(tx: Transaction, runner: StoredRunner, head: Head, claim_no: number): Work<ClaimedRun> {
  const at = tx.now.toISOString();
  const run = {
    run_no: head.run_no,
    run_id: fromColumn(head.run_id),
    attempt: head.attempt + 1,
    last_n: 0,
    last_seq: head.last_seq,
  };
  yield* storeEvent(tx, run, null, at, { type: "status", status: "claimed", reason: fromColumn(runner.column) });
  yield write(claim, run.attempt, run.last_seq, runner.column, claim_no, at, run.run_no);
  const { hostname = null, executor_profile = null } = runner.row;
  if (head.session_id !== null) yield write(placeSession, hostname, executor_profile, runner.column, head.session_id);
  const [told = {}] = head.row === null ? yield first(selectInvocation, run.run_no) : [head.row];
  return claimedRun(runner, told, run.attempt);
}
