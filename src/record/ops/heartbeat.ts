import type { DispatchResult, Heartbeat } from "../../model/dispatch-ops.ts";
import { hasEnded } from "../../model/states.ts";
import { first, write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { loseRun, requeue } from "../moves/lose-run.ts";
import { findAssignedRuns } from "./assigned-runs.ts";
import { findRun, type StoredRun } from "../moves/stored-run.ts";
import { checkRunner, type StoredRunner } from "./runner-row.ts";
import { findSpentBudget } from "./spending.ts";

/** The runner and its claim in one statement, because each statement is a network round trip. */
const selectRunner = `
  select runners.*,
    (select claims.claim_no from claims where claims.runner_id = runners.runner_id and claim_id = ?2) as known_claim_no
  from runners where runner_id = ?1`;
const renew = `update runners set lease_until = ?, last_seen_at = ?, claim_no = ? where runner_id = ?`;

export function* applyHeartbeat(tx: Transaction, op: Heartbeat): Work<DispatchResult> {
  const claim = op.as_of_claim === null ? null : toColumn(op.as_of_claim);
  const [row] = yield first(selectRunner, toColumn(op.runner_id), claim);
  const runner = checkRunner(row, op);
  if (typeof runner === "string") return { ok: false, conflict: runner };
  const now = tx.now.getTime();
  const answeredClaimNo = findLastAnsweredClaim(runner, op.as_of_claim);
  // The runner never polls with an answered claim again. A late copy of that poll must not get a run: nobody would read
  // the response, and the run would wait until the next report returns it to pending.
  yield write(renew, now + op.lease_ms, now, Math.max(runner.claim_no, answeredClaimNo + 1), runner.storedId);

  const fenced: [string, number][] = [];
  const abandon: [string, number][] = [];
  const confirmed = new Set<string>();
  const storedRuns = new Map((yield* findAssignedRuns(runner.storedId)).map((run) => [run.run_id, run]));
  const finishing = new Set(op.finishing?.map(toAttemptKey));
  for (const heldRun of op.held) {
    const [run_id, attempt] = heldRun;
    if (storedRuns.get(run_id)?.attempt === attempt) {
      confirmed.add(run_id);
      continue;
    }
    if (finishing.has(toAttemptKey(heldRun))) continue;
    abandon.push(heldRun);
    if (!(yield* hasEndedHere(runner, run_id, attempt))) fenced.push(heldRun);
  }
  const requeued: string[] = [];
  for (const run of storedRuns.values())
    if (
      !confirmed.has(run.run_id) &&
      run.claim_no !== null &&
      run.claim_no <= answeredClaimNo &&
      (yield* requeueUnheld(tx, run, op.runner_id))
    )
      requeued.push(run.run_id);
  const over_budget: [string, number][] = [];
  for (const run of storedRuns.values())
    if (confirmed.has(run.run_id) && (yield* findSpentBudget(tx, run)) !== null)
      over_budget.push([run.run_id, run.attempt]);
  const spent = over_budget.length === 0 ? {} : { over_budget };
  return { ok: true, op: "heartbeat", fenced, abandon, requeued, ...spent };
}

const toAttemptKey = ([run_id, attempt]: readonly [string, number]): string => `${run_id}.${attempt}`;

/** Reports whether the attempt ended on this runner, rather than being taken over by another. */
function* hasEndedHere(runner: StoredRunner, run_id: string, attempt: number): Work<boolean> {
  const run = yield* findRun(run_id);
  return run !== null && run.attempt === attempt && run.runner_id === runner.storedId && hasEnded(run.status);
}

/**
 * The last claim whose response the runner has received. A run of that claim or an earlier one that the runner does not
 * hold is lost.
 */
function findLastAnsweredClaim(runner: StoredRunner, as_of_claim: string | null): number {
  // An unknown claim proves nothing.
  return as_of_claim === null ? runner.registered_claim_no : Number(runner.row["known_claim_no"] ?? 0);
}

/**
 * A run that was only claimed never reached its runner. A run that had started was lost by its runner, which uses up an
 * attempt.
 */
function* requeueUnheld(tx: Transaction, run: StoredRun, runner_id: string): Work<boolean> {
  const outcome =
    run.status === "claimed"
      ? yield* requeue(tx, run, `It never reached runner ${runner_id}.`)
      : yield* loseRun(tx, run, `Its runner ${runner_id} no longer holds it.`);
  return outcome === "requeued";
}
