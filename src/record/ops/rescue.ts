import type { DispatchResult, DrainRunner, ForgiveOutage, Rescue } from "../../model/dispatch-ops.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { end, lose } from "./give-back.ts";
import { heldRuns, storedRun } from "./held-runs.ts";
import { lostMessage, markLost } from "./lose-runner.ts";
import { selectStored } from "./run-state.ts";

const selectExpired = `
  select runner_id from runners where lease_until < ? and status <> 'lost' order by lease_until limit ?`;
const selectLost = `select runner_id from runners where status = 'lost'`;
const forgetLost = `delete from runners where status = 'lost' and last_seen_at < ?`;
const extend = `update runners set lease_until = max(lease_until, ?) where status <> 'lost'`;
const unmatchedFromNow = `update demands set unmatched_since = ? where unmatched_since is not null`;
const setDraining = `update runners set status = ? where runner_id = ? and status <> 'lost' returning runner_id`;

const selectUnmatched = `
  select demand_id, body from demands where unmatched_since is not null and unmatched_since <= ?`;
const selectTooOld = `${selectStored} indexed by runs_to_claim
  where demand_id = ? and status = 'pending' and blocked_by is null and created_at <= ?
  order by priority desc, run_id limit ?`;
const lookAgain = `
  update demands set unmatched_since = (
    select cast(unixepoch(min(created_at), 'subsec') * 1000 as integer) from runs indexed by runs_to_claim
    where runs.demand_id = demands.demand_id and status = 'pending' and blocked_by is null)
  where demand_id = ?`;

/** How long a lost runner stays in the list. */
const keptLostMs = 24 * 60 * 60 * 1000;

export function rescue(tx: Transaction, op: Rescue): DispatchResult {
  const now = tx.now.getTime();
  const expired = tx
    .sql(selectExpired)
    .all(now, op.limit)
    .map((row) => String(row["runner_id"]));
  for (const column of expired) markLost(tx, column);

  const work = { requeued: [] as string[], failed: [] as string[], left: op.limit };
  for (const row of tx.sql(selectLost).all()) loseSome(tx, String(row["runner_id"]), work);
  failUnmatched(tx, op, work);
  tx.sql(forgetLost).run(now - keptLostMs);
  return {
    ok: true,
    op: "rescue",
    lost_runners: expired.map(fromColumn),
    requeued: work.requeued,
    failed: work.failed,
    more: work.left <= 0 || expired.length === op.limit,
  };
}

interface Work {
  requeued: string[];
  failed: string[];
  left: number;
}

function loseSome(tx: Transaction, column: string, work: Work): void {
  if (work.left <= 0) return;
  for (const run of heldRuns(tx, column, work.left)) {
    const became = lose(tx, run, lostMessage(column));
    if (became === "requeued") work.requeued.push(run.run_id);
    if (became === "failed") work.failed.push(run.run_id);
    work.left -= 1;
  }
}

function failUnmatched(tx: Transaction, { unmatched_ms }: Rescue, work: Work): void {
  const before = tx.now.getTime() - unmatched_ms;
  for (const row of tx.sql(selectUnmatched).all(before)) {
    if (work.left <= 0) return;
    const demandId = Number(row["demand_id"]);
    const old = tx.sql(selectTooOld).all(demandId, new Date(before).toISOString(), work.left);
    for (const run of old.map(storedRun)) {
      end(
        tx,
        run,
        "failed",
        "no_matching_runner",
        `No runner could take it within ${unmatched_ms / 1000} s. It demands ${String(row["body"])}.`,
      );
      work.failed.push(run.run_id);
    }
    work.left -= old.length;
    // Nothing is due here before the oldest of the others is; with none left, until another run comes.
    if (work.left > 0) tx.sql(lookAgain).run(demandId);
  }
}

export function forgiveOutage(tx: Transaction, op: ForgiveOutage): DispatchResult {
  const now = tx.now.getTime();
  tx.sql(extend).run(now + op.lease_ms);
  tx.sql(unmatchedFromNow).run(now);
  return { ok: true, op: "forgive_outage" };
}

export function drainRunner(tx: Transaction, op: DrainRunner): DispatchResult {
  const drained = tx.sql(setDraining).get(op.draining ? "draining" : "online", toColumn(op.runner_id));
  if (drained === undefined) return { ok: false, conflict: "unknown_runner" };
  tx.changed.ordered.add(op.runner_id);
  return { ok: true, op: "drain_runner" };
}
