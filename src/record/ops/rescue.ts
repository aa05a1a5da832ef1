import type { DispatchResult, DrainRunner, ForgiveOutage, Rescue } from "../../model/dispatch-ops.ts";
import { all, first, write, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { end, lose } from "./give-back.ts";
import { runsOfLostRunners, storedRun } from "./held-runs.ts";
import { lostMessage, markLost } from "./lose-runner.ts";
import { selectStored } from "./run-state.ts";

const selectExpired = `
  select runner_id from runners where lease_until < ? and status <> 'lost' order by lease_until limit ?`;
const forgetLost = `delete from runners where status = 'lost' and last_seen_at < ?`;
const extend = `
  update runners set lease_until = case when lease_until < ?1 then ?1 else lease_until end where status <> 'lost'`;
const unmatchedFromNow = `update demands set unmatched_since = ? where unmatched_since is not null`;
const setDraining = `update runners set status = ? where runner_id = ? and status <> 'lost' returning runner_id`;

/** Only PostgreSQL's record has this column. */
const selectJudged = `select judged_at from store`;
const setJudged = `update store set judged_at = ?`;

const selectUnmatched = `
  select demand_id, body from demands where unmatched_since is not null and unmatched_since <= ?`;
const selectTooOld = `${selectStored} indexed by runs_to_claim
  where demand_id = ? and status = 'pending' and blocked_by is null and created_at <= ?
  order by priority desc, run_id limit ?`;
const selectOldest = `
  select min(created_at) as created_at from runs indexed by runs_to_claim
  where demand_id = ? and status = 'pending' and blocked_by is null`;
const setUnmatched = `update demands set unmatched_since = ? where demand_id = ?`;

/** How long a lost runner stays in the list. */
const keptLostMs = 24 * 60 * 60 * 1000;

/** Of one call: others wait meanwhile, and each run is some questions. */
const mostRuns = 100;

export function* rescue(tx: Transaction, op: Rescue): Work<DispatchResult> {
  const now = tx.now.getTime();
  if (op.last !== undefined && (yield* nobodyJudged(now, op.last, op))) yield* beginAnew(now, op.last.lease_ms);
  if (op.among_others) yield write(setJudged, now);
  const expired = (yield all(selectExpired, now, op.limit)).map((row) => String(row["runner_id"]));
  for (const column of expired) yield* markLost(tx, column);

  const round = { requeued: [] as string[], failed: [] as string[], left: Math.min(op.limit, mostRuns) };
  yield* loseSome(tx, round);
  yield* failUnmatched(tx, op, round);
  yield write(forgetLost, now - keptLostMs);
  return {
    ok: true,
    op: "rescue",
    at: now,
    lost_runners: expired.map(fromColumn),
    requeued: round.requeued,
    failed: round.failed,
    more: round.left <= 0 || expired.length === op.limit,
  };
}

function* nobodyJudged(now: number, { at, lease_ms }: NonNullable<Rescue["last"]>, op: Rescue): Work<boolean> {
  const longAgo = now - lease_ms / 2;
  if (at >= longAgo) return false;
  if (!op.among_others) return true;
  const [row] = yield first(selectJudged);
  return Number(row?.["judged_at"] ?? 0) < longAgo;
}

/** What one call has done, and to how many runs more it may. */
interface Round {
  requeued: string[];
  failed: string[];
  left: number;
}

function* loseSome(tx: Transaction, round: Round): Work<void> {
  for (const run of yield* runsOfLostRunners(round.left)) {
    const became = yield* lose(tx, run, lostMessage(String(run.runner_id)));
    if (became === "requeued") round.requeued.push(run.run_id);
    if (became === "failed") round.failed.push(run.run_id);
    round.left -= 1;
  }
}

function* failUnmatched(tx: Transaction, { unmatched_ms }: Rescue, round: Round): Work<void> {
  const before = tx.now.getTime() - unmatched_ms;
  for (const row of yield all(selectUnmatched, before)) {
    if (round.left <= 0) return;
    const demandId = Number(row["demand_id"]);
    const old = yield all(selectTooOld, demandId, new Date(before).toISOString(), round.left);
    for (const run of old.map(storedRun)) {
      yield* end(
        tx,
        run,
        "failed",
        "no_matching_runner",
        `No runner could take it within ${unmatched_ms / 1000} s. It demands ${String(row["body"])}.`,
      );
      round.failed.push(run.run_id);
    }
    round.left -= old.length;
    if (round.left > 0) yield* lookAgain(demandId);
  }
}

/** Nothing is due here before the oldest of the others is; with none left, until another run comes. */
function* lookAgain(demandId: number): Work<void> {
  const [oldest] = yield first(selectOldest, demandId);
  const created_at = oldest?.["created_at"];
  const since = typeof created_at === "string" ? Date.parse(fromColumn(created_at)) : null;
  yield write(setUnmatched, since, demandId);
}

const selectHeard = `select max(last_seen_at) as heard from runners where status <> 'lost'`;

export function* forgiveOutage(tx: Transaction, op: ForgiveOutage): Work<DispatchResult> {
  const now = tx.now.getTime();
  if (op.unless_heard_within_ms !== undefined) {
    const [row] = yield first(selectHeard);
    if (typeof row?.["heard"] === "number" && now - row["heard"] < op.unless_heard_within_ms)
      return { ok: true, op: "forgive_outage" };
  }
  yield* beginAnew(now, op.lease_ms);
  return { ok: true, op: "forgive_outage" };
}

/** Leases, and the time that runs have waited for a runner that could take them. */
function* beginAnew(now: number, leaseMs: number): Work<void> {
  yield write(extend, now + leaseMs);
  yield write(unmatchedFromNow, now);
}

export function* drainRunner(tx: Transaction, op: DrainRunner): Work<DispatchResult> {
  const [drained] = yield first(setDraining, op.draining ? "draining" : "online", toColumn(op.runner_id));
  if (drained === undefined) return { ok: false, conflict: "unknown_runner" };
  tx.changed.ordered.add(op.runner_id);
  return { ok: true, op: "drain_runner" };
}
