import type { DispatchResult, Heartbeat } from "../../model/dispatch-ops.ts";
import { isTerminal } from "../../model/states.ts";
import { first, write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { end, lose, requeue } from "./give-back.ts";
import { runsUpToClaim } from "./held-runs.ts";
import { findRun, type StoredRun } from "./run-state.ts";
import { speaking, type StoredRunner } from "./runner-row.ts";

const renew = `update runners set lease_until = ?, last_seen_at = ? where runner_id = ?`;
const selectClaim = `select claim_no from claims where runner_id = ? and claim_id = ?`;

export function* heartbeat(tx: Transaction, op: Heartbeat): Work<DispatchResult> {
  const runner = yield* speaking(op);
  if (typeof runner === "string") return { ok: false, conflict: runner };
  const now = tx.now.getTime();
  yield write(renew, now + op.lease_ms, now, runner.column);

  const fenced: [string, number][] = [];
  const abandon: [string, number][] = [];
  const held = new Set<string>();
  for (const [run_id, attempt] of op.held) {
    const run = yield* findRun(run_id);
    const own = run !== null && run.attempt === attempt && run.runner_id === runner.column && run.status !== "parked";
    if (own && !isTerminal(run.status)) {
      held.add(run_id);
      continue;
    }
    abandon.push([run_id, attempt]);
    if (!own) fenced.push([run_id, attempt]);
  }
  return { ok: true, op: "heartbeat", fenced, abandon, requeued: yield* takeBack(tx, runner, op, held) };
}

/** What was handed out, must have been seen by now if it arrived, and is not held. */
function* takeBack(tx: Transaction, runner: StoredRunner, op: Heartbeat, held: ReadonlySet<string>): Work<string[]> {
  const requeued: string[] = [];
  const upTo = yield* seenUpTo(runner, op.as_of_claim);
  for (const run of yield* runsUpToClaim(runner.column, upTo)) {
    if (held.has(run.run_id)) continue;
    if (yield* putBack(tx, run, op.runner_id)) requeued.push(run.run_id);
  }
  return requeued;
}

/** The last claim the list speaks of. The newest one may still be on its way to the runner; an unknown one proves nothing. */
function* seenUpTo(runner: StoredRunner, as_of_claim: string | null): Work<number> {
  if (as_of_claim === null) return runner.registered_claim_no;
  const [claim] = yield first(selectClaim, runner.column, toColumn(as_of_claim));
  return claim === undefined ? 0 : Math.min(Number(claim["claim_no"]), runner.claim_no - 1);
}

function* putBack(tx: Transaction, run: StoredRun, runner_id: string): Work<boolean> {
  if (run.status === "stopping") {
    yield* end(tx, run, "cancelled", null, `Its runner ${runner_id} no longer holds it.`);
    return false;
  }
  if (run.status !== "claimed")
    return (yield* lose(tx, run, `Its runner ${runner_id} no longer holds it.`)) === "requeued";
  yield* requeue(tx, run, `It never reached runner ${runner_id}.`);
  return true;
}
