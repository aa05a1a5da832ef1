import type { DispatchResult, Heartbeat } from "../../model/dispatch-ops.ts";
import { isTerminal } from "../../model/states.ts";
import { first, write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { end, lose, requeue } from "./give-back.ts";
import { heldRuns } from "./held-runs.ts";
import { findRun, type StoredRun } from "./run-state.ts";
import { speakingOf, type StoredRunner } from "./runner-row.ts";

/** With the claim it speaks of: over a network each question is a wait. */
const selectSpeaker = `
  select runners.*,
    (select claims.claim_no from claims where claims.runner_id = runners.runner_id and claim_id = ?2) as known_claim_no
  from runners where runner_id = ?1`;
const renew = `update runners set lease_until = ?, last_seen_at = ? where runner_id = ?`;

export function* heartbeat(tx: Transaction, op: Heartbeat): Work<DispatchResult> {
  const claim = op.as_of_claim === null ? null : toColumn(op.as_of_claim);
  const [row] = yield first(selectSpeaker, toColumn(op.runner_id), claim);
  const runner = speakingOf(row, op);
  if (typeof runner === "string") return { ok: false, conflict: runner };
  const now = tx.now.getTime();
  yield write(renew, now + op.lease_ms, now, runner.column);

  const fenced: [string, number][] = [];
  const abandon: [string, number][] = [];
  const held = new Set<string>();
  const stored = new Map((yield* heldRuns(runner.column)).map((run) => [run.run_id, run]));
  const finishing = new Set(op.finishing?.map(keyOf));
  for (const one of op.held) {
    const [run_id, attempt] = one;
    if (stored.get(run_id)?.attempt === attempt) {
      held.add(run_id);
      continue;
    }
    if (finishing.has(keyOf(one))) continue;
    abandon.push(one);
    if (!(yield* hasEndedHere(runner, run_id, attempt))) fenced.push(one);
  }
  const requeued = yield* takeBack(
    tx,
    runner,
    op,
    [...stored.values()].filter(({ run_id }) => !held.has(run_id)),
  );
  return { ok: true, op: "heartbeat", fenced, abandon, requeued };
}

const keyOf = ([run_id, attempt]: readonly [string, number]): string => `${run_id}.${attempt}`;

/** Or is another's by now. */
function* hasEndedHere(runner: StoredRunner, run_id: string, attempt: number): Work<boolean> {
  const run = yield* findRun(run_id);
  return run !== null && run.attempt === attempt && run.runner_id === runner.column && isTerminal(run.status);
}

/** What was handed out, must have been seen by now if it arrived, and is not held. */
function* takeBack(tx: Transaction, runner: StoredRunner, op: Heartbeat, missing: StoredRun[]): Work<string[]> {
  const requeued: string[] = [];
  const upTo = seenUpTo(runner, op.as_of_claim);
  for (const run of missing)
    if (run.claim_no !== null && run.claim_no <= upTo && (yield* putBack(tx, run, op.runner_id)))
      requeued.push(run.run_id);
  return requeued;
}

/** The last claim the list speaks of. The newest one may still be on its way to the runner; an unknown one proves nothing. */
function seenUpTo(runner: StoredRunner, as_of_claim: string | null): number {
  if (as_of_claim === null) return runner.registered_claim_no;
  const { known_claim_no: known = null } = runner.row;
  return known === null ? 0 : Math.min(Number(known), runner.claim_no - 1);
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
