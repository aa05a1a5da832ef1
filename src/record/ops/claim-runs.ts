import type { ClaimedRun, ClaimRuns, DispatchResult } from "../../model/dispatch-ops.ts";
import { first, write, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { enterDirectory } from "./enter-directory.ts";
import { assignRun } from "./assign-run.ts";
import { findRunsOfClaim } from "./assigned-runs.ts";
import { buildClaimedRun } from "./invocation.ts";
import { ackOrders, readOpenOrders } from "./orders.ts";
import { hasResumed, pickResumed, pickRuns } from "./pick-runs.ts";
import { checkRunner, type StoredRunner } from "./runner-row.ts";
import { hasLimits, parkIfLimited } from "./spending.ts";

/** Everything a claim needs in one statement, because each statement is a network round trip. */
const selectClaimer = `
  select runners.*,
    (select claims.claim_no from claims where claims.runner_id = runners.runner_id and claim_id = ?2) as known_claim_no,
    exists (select 1 from orders where orders.runner_id = runners.runner_id) as has_orders,
    ${hasResumed} as has_resumed, ${hasLimits("?3")} as has_limits
  from runners where runner_id = ?1`;
const insertClaim = `insert into claims (runner_id, claim_no, claim_id) values (?, ?, ?)`;
const deleteOldClaims = `delete from claims where runner_id = ? and claim_no <= ?`;
const renew = `update runners set lease_until = ?, last_seen_at = ?, claim_no = ? where runner_id = ?`;

/**
 * Runs per claim, even if the runner wants more: each takes several statements while other writers wait. The next claim
 * gets the rest.
 */
const runsPerClaim = 50;

/**
 * How many claim numbers are stored. A poll with an older claim counts as new. Each claim uses two numbers, see
 * ./heartbeat.ts.
 */
const storedClaims = 128;

export function* claimRuns(tx: Transaction, op: ClaimRuns): Work<DispatchResult> {
  const [row] = yield first(selectClaimer, toColumn(op.runner_id), toColumn(op.claim_id), tx.now.getTime());
  const runner = checkRunner(row, op);
  if (typeof runner === "string") return { ok: false, conflict: runner };
  const hasOrders = runner.row["has_orders"] === 1;
  if (hasOrders) yield* ackOrders(runner.storedId, op.ack_order);
  const claim_no = yield* resolveClaimNo(runner, op.claim_id);
  const newest = Math.max(claim_no, runner.claim_no);
  if (op.is_repeat === undefined || newest > runner.claim_no) {
    const now = tx.now.getTime();
    yield write(renew, now + op.lease_ms, now, newest, runner.storedId);
  }
  return {
    ok: true,
    op: "claim_runs",
    claims: yield* findClaims(tx, runner, op, claim_no, newest),
    orders: hasOrders ? yield* readOpenOrders(runner.storedId) : [],
    draining: runner.status === "draining",
    ...(claim_no < newest ? { closed: true } : {}),
  };
}

/** The number of this claim: its existing one, or the next. */
function* resolveClaimNo(runner: StoredRunner, claim_id: string): Work<number> {
  const { known_claim_no: knownClaimNo = null } = runner.row;
  if (knownClaimNo !== null) return Number(knownClaimNo);
  const claim_no = runner.claim_no + 1;
  yield write(insertClaim, runner.storedId, claim_no, toColumn(claim_id));
  yield write(deleteOldClaims, runner.storedId, claim_no - storedClaims);
  return claim_no;
}

/** Returns the runs that this claim already got and still holds. If there are none, only the newest claim gets new runs. */
function* findClaims(
  tx: Transaction,
  runner: StoredRunner,
  op: ClaimRuns,
  claim_no: number,
  newest: number,
): Work<ClaimedRun[]> {
  const repeated = yield* readRepeatedClaims(runner, claim_no);
  if (repeated.length > 0) return repeated;
  if (claim_no < newest || op.pause_reason !== undefined || runner.status === "draining") return [];
  const claims = yield* takeResumed(tx, runner, op, claim_no);
  const want = Math.min(op.want, runsPerClaim) - claims.length;
  return want < 1 ? claims : [...claims, ...(yield* takeRuns(tx, runner, want, claim_no))];
}

/** Hands out resumed runs even without a free slot, unless the runner reports another shortage. */
function* takeResumed(tx: Transaction, runner: StoredRunner, op: ClaimRuns, claim_no: number): Work<ClaimedRun[]> {
  const claims: ClaimedRun[] = [];
  if (runner.row["has_resumed"] !== 1 || op.shortage !== undefined) return claims;
  for (const head of yield* pickResumed(runner, runsPerClaim))
    if (yield* enterDirectory(tx, runner, head)) claims.push(yield* assignRun(tx, runner, head, claim_no));
  return claims;
}

function* readRepeatedClaims(runner: StoredRunner, claim_no: number): Work<ClaimedRun[]> {
  const repeated: ClaimedRun[] = [];
  // A new claim has no runs yet.
  if (runner.row["known_claim_no"] === null) return repeated;
  for (const row of yield* findRunsOfClaim(runner.storedId, claim_no))
    if (row["status"] !== "stopping") repeated.push(yield* buildClaimedRun(runner, row, Number(row["attempt"])));
  return repeated;
}

/** How many runs one claim may block or park. The runner is notified and continues with its next claim. */
const maxBlocked = 500;

/** Skips runs whose directory is taken or whose budget or usage limit is reached, and tries the next ones. */
function* takeRuns(tx: Transaction, runner: StoredRunner, want: number, claim_no: number): Work<ClaimedRun[]> {
  const claims: ClaimedRun[] = [];
  for (let blocked = 0; ;) {
    const heads = yield* pickRuns(runner, want - claims.length);
    const before = claims.length;
    for (const head of heads)
      if (!(yield* parkIfLimited(tx, runner, head)) && (yield* enterDirectory(tx, runner, head)))
        claims.push(yield* assignRun(tx, runner, head, claim_no));
    const skippedCount = heads.length - (claims.length - before);
    if (skippedCount === 0 || claims.length === want) return claims;
    blocked += skippedCount;
    if (blocked < maxBlocked) continue;
    tx.changes.runnersWithOrders.add(fromColumn(runner.storedId));
    return claims;
  }
}
