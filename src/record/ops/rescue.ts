import type { DispatchResult, DrainRunner, Rescue } from "../../model/dispatch-ops.ts";
import { all, first, write, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { endRun, loseRun } from "../moves/lose-run.ts";
import { findRunsOfLostRunners, toStoredRun } from "./assigned-runs.ts";
import { formatLostMessage, markLost } from "./lose-runner.ts";
import { isClaimable } from "../moves/statuses.ts";
import { findSessionHost, formatPinnedSessionMessage, widenDemands } from "./place-run.ts";
import { expireQuestions, resumeDueRuns } from "./due-runs.ts";
import { selectStored } from "../moves/stored-run.ts";

const selectExpired = `
  select runner_id from runners where lease_until < ? and status <> 'lost' order by lease_until limit ?`;
const deleteLost = `delete from runners where status = 'lost' and last_seen_at < ?`;
const setDraining = `update runners set status = ? where runner_id = ? and status <> 'lost' returning runner_id`;

const selectUnmatched = `
  select demand_id, body from demands where unmatched_since is not null and unmatched_since <= ?`;
const selectTooOld = `${selectStored} indexed by runs_to_claim
  where demand_id = ? and ${isClaimable} and created_at <= ?
  order by priority desc, run_id limit ?`;
const selectOldest = `
  select min(created_at) as created_at from runs indexed by runs_to_claim
  where demand_id = ? and ${isClaimable}`;
const setUnmatched = `update demands set unmatched_since = ? where demand_id = ?`;

const selectPreferring = `
  select run_no, status, resumed from runs where prefer_until is not null and prefer_until <= ? order by prefer_until limit ?`;

/** How long a lost runner stays listed. */
const lostRetentionMs = 24 * 60 * 60 * 1000;

/** Runs per call: each takes several statements while other writers wait. */
const maxRuns = 100;

export function* rescue(tx: Transaction, op: Rescue): Work<DispatchResult> {
  const now = tx.now.getTime();
  const since = findListeningStart(now, op);
  const canExpireLeases = op.listening === undefined || now - since >= op.listening.lease_ms;
  const expired = canExpireLeases
    ? (yield all(selectExpired, now, op.limit)).map((row) => String(row["runner_id"]))
    : [];
  for (const storedId of expired) yield* markLost(tx, storedId);

  const progress = { requeued: [] as string[], failed: [] as string[], remaining: Math.min(op.limit, maxRuns) };
  yield* releaseLost(tx, progress);
  yield* releasePreferring(tx, progress);
  yield* processDue(tx, progress);
  if (now - since >= op.unmatched_ms) yield* failUnmatched(tx, op, progress);
  yield write(deleteLost, now - lostRetentionMs);
  return {
    ok: true,
    op: "rescue",
    at: now,
    since,
    lost_runners: expired.map(fromColumn),
    requeued: progress.requeued,
    failed: progress.failed,
    more: progress.remaining <= 0 || expired.length === op.limit,
  };
}

function findListeningStart(now: number, { listening }: Rescue): number {
  if (listening === undefined) return 0;
  const { lease_ms, previous } = listening;
  return previous !== undefined && now - previous.at <= lease_ms / 2 ? previous.since : now;
}

/** The results of this call so far, and how many more runs it may process. */
interface Progress {
  requeued: string[];
  failed: string[];
  remaining: number;
}

function* releaseLost(tx: Transaction, progress: Progress): Work<void> {
  for (const run of yield* findRunsOfLostRunners(progress.remaining)) {
    const outcome = yield* loseRun(tx, run, formatLostMessage(String(run.runner_id)));
    if (outcome === "requeued") progress.requeued.push(run.run_id);
    if (outcome === "failed") progress.failed.push(run.run_id);
    progress.remaining -= 1;
  }
}

/** Resumes parked runs that are due and expires unanswered questions. */
function* processDue(tx: Transaction, progress: Progress): Work<void> {
  if (progress.remaining <= 0) return;
  const resumed = yield* resumeDueRuns(tx, progress.remaining);
  progress.requeued.push(...resumed);
  progress.remaining -= resumed.length;
  if (progress.remaining <= 0) return;
  const { failed, expired } = yield* expireQuestions(tx, progress.remaining);
  progress.failed.push(...failed);
  progress.remaining -= expired;
}

/** Releases runs that no preferred runner took in time, so that any runner may take them. */
function* releasePreferring(tx: Transaction, progress: Progress): Work<void> {
  if (progress.remaining <= 0) return;
  for (const row of yield all(selectPreferring, tx.now.getTime(), progress.remaining)) {
    const demands = yield* widenDemands(tx, Number(row["run_no"]));
    const list = row["resumed"] === 1 ? (tx.changes.resumed ??= []) : tx.changes.claimable;
    if (row["status"] === "pending") list.push(demands);
    progress.remaining -= 1;
  }
}

function* failUnmatched(tx: Transaction, { unmatched_ms }: Rescue, progress: Progress): Work<void> {
  const cutoff = tx.now.getTime() - unmatched_ms;
  for (const row of yield all(selectUnmatched, cutoff)) {
    if (progress.remaining <= 0) return;
    const demandId = Number(row["demand_id"]);
    const rows = yield all(selectTooOld, demandId, new Date(cutoff).toISOString(), progress.remaining);
    for (const run of rows.map(toStoredRun)) {
      const message = `No runner could take it within ${unmatched_ms / 1000} s. It demands ${String(row["body"])}.`;
      const hostname = yield* findSessionHost(run.run_no);
      if (hostname === null) yield* endRun(tx, run, "failed", "no_matching_runner", message);
      else yield* endRun(tx, run, "failed", "session_not_found", `${message} ${formatPinnedSessionMessage(hostname)}`);
      progress.failed.push(run.run_id);
    }
    progress.remaining -= rows.length;
    if (progress.remaining > 0) yield* postponeCheck(demandId);
  }
}

/** Sets the next check to when the oldest remaining run is due. If no runs remain, there is no next check. */
function* postponeCheck(demandId: number): Work<void> {
  const [oldest] = yield first(selectOldest, demandId);
  const created_at = oldest?.["created_at"];
  const since = typeof created_at === "string" ? Date.parse(fromColumn(created_at)) : null;
  yield write(setUnmatched, since, demandId);
}

export function* drainRunner(tx: Transaction, op: DrainRunner): Work<DispatchResult> {
  const [drained] = yield first(setDraining, op.draining ? "draining" : "online", toColumn(op.runner_id));
  if (drained === undefined) return { ok: false, conflict: "unknown_runner" };
  tx.changes.runnersWithOrders.add(op.runner_id);
  return { ok: true, op: "drain_runner" };
}
