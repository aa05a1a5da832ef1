import type { Demands } from "../../model/run.ts";
import { all, first, write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { pinToSession } from "../ops/place-run.ts";
import { statusIn } from "./statuses.ts";
import type { EndingRun, StoredRun } from "./stored-run.ts";

const selectSharers = `
  select other.body from demands own join demands other on other.cap_agent = own.cap_agent where own.demand_id = ?`;
const waitsForSession = `status = 'pending' and blocked_by = 'session'`;
const selectNext = `
  select run_no, run_id from runs where session_id = ? and ${waitsForSession} order by run_id limit 1`;
/** A fork that waits for its origin still counts as the first run of its own session. */
const selectHolder = `
  select 1 from runs where session_id = ? and ${statusIn("open")}
    and not (${waitsForSession} and mode = 'resume') limit 1`;
/** Scans all blocked runs, so it skips procedural agents: they have many runs, and none of them is ever forked. */
const selectForks = `
  select run_no from agent_revs cross join runs indexed by runs_blocked
  where agent_revs.agent_rev_id = ?1 and agent_revs.type <> 'procedural'
    and forked_from = ?2 and mode = 'fork' and ${waitsForSession} and (run_id < ?3 or ?3 is null)`;
const selectWaitingDemands = `
  select distinct demand_id from runs indexed by runs_before_directory
  where directory = ? and status = 'pending' and blocked_by = 'directory'`;
const selectFirst = `
  select run_no, demands.body from runs indexed by runs_before_directory join demands using (demand_id)
  where directory = ? and runs.demand_id = ? and status = 'pending' and blocked_by = 'directory'
  order by priority desc, run_id limit 1`;
const unblock = `
  update runs set blocked_by = null where run_no = ?`;

/** Notifies runners that a run no longer counts against its agent's cap. */
export function* releaseCap(tx: Transaction, run: StoredRun & Partial<EndingRun>): Work<void> {
  if (run.agent_rev_id === null || run.cap_agent === null) return;
  for (const row of yield all(selectSharers, run.demand_id)) notifyClaimable(tx, String(row["body"]));
}

/**
 * Releases the next run of the session after a run has ended, and the forks requested before that one. A resume that was
 * itself blocked does not release anything.
 */
export function* releaseSession(tx: Transaction, run: StoredRun & Partial<EndingRun>): Work<void> {
  const { agent_rev_id, session_id } = run;
  if (agent_rev_id === null || session_id === null) return;
  if (run.awaited === 0 && run.agent_type === "procedural") return;
  if (run.blocked_by === "session") {
    const [holder] = yield first(selectHolder, session_id);
    if (holder !== undefined) return;
  }
  const [next] = yield first(selectNext, session_id);
  const forks = yield all(selectForks, agent_rev_id, session_id, next?.["run_id"] ?? null);
  for (const row of next === undefined ? forks : [...forks, next]) {
    const run_no = Number(row["run_no"]);
    yield write(unblock, run_no);
    tx.changes.claimable.push(yield* pinToSession(tx, run_no, session_id));
  }
}

/**
 * Releases the next runs waiting for the directory: one per demand, because a run that no runner can take would block the
 * others. The first claim gets the directory, and the other runs are blocked again.
 */
export function* releaseDirectory(tx: Transaction, run: Pick<StoredRun, "directory" | "blocked_by">): Work<void> {
  if (run.directory === null || run.blocked_by === "directory") return;
  for (const row of yield all(selectWaitingDemands, run.directory)) {
    const [next] = yield first(selectFirst, run.directory, Number(row["demand_id"]));
    if (next === undefined) continue;
    yield write(unblock, Number(next["run_no"]));
    notifyClaimable(tx, String(next["body"]));
  }
}

const selectFollowers = `
  select run_id from schedule_slots where waits_for = ?`;
const waitLonger = `
  update schedule_slots set waits_for = (select own.waits_for from schedule_slots own where own.run_id = ?1) where waits_for = ?1`;
const stopWaiting = `
  update schedule_slots set waits_for = null where waits_for = ?`;
const release = `
  update runs set blocked_by = null where run_id = ? and status = 'pending' and blocked_by = 'schedule' returning demand_id`;
const selectDemand = `
  select body from demands where demand_id = ?`;

/**
 * Releases the next run of the schedule after a run has ended. If the ended run was itself waiting, the next one waits for
 * its predecessor instead.
 */
export function* releaseSchedule(tx: Transaction, run: StoredRun & Partial<EndingRun>): Work<void> {
  if (run.agent_rev_id === null || run.followed === 0) return;
  const run_id = toColumn(run.run_id);
  if (run.blocked_by === "schedule") {
    yield write(waitLonger, run_id);
    return;
  }
  const followers = yield all(selectFollowers, run_id);
  yield write(stopWaiting, run_id);
  for (const follower of followers) {
    const [released] = yield first(release, follower["run_id"] ?? null);
    if (released === undefined) continue;
    const [demand] = yield first(selectDemand, Number(released["demand_id"]));
    notifyClaimable(tx, String(demand?.["body"]));
  }
}

export function notifyClaimable(tx: Transaction, body: string, ignoresLimits = false): void {
  // create_run wrote this value from a run's demands.
  const demands = JSON.parse(body) as Demands;
  if (ignoresLimits) (tx.changes.resumed ??= []).push(demands);
  else tx.changes.claimable.push(demands);
}
