import type { Demands } from "../../model/run.ts";
import { all, first, write, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { pinToSession } from "../ops/place-run.ts";
import { statusIn } from "./statuses.ts";
import type { EndingRun, StoredRun } from "./stored-run.ts";

const selectSharers = `
  select other.body from demands own join demands other on other.cap_agent = own.cap_agent where own.demand_id = ?`;
const waits = `status = 'pending' and blocked_by = 'session'`;
const selectNext = `
  select run_no, run_id from runs where session_id = ? and ${waits} order by run_id limit 1`;
/** A fork that waits for its origin is the first of its own session all the same. */
const selectHolder = `
  select 1 from runs where session_id = ? and ${statusIn("open")}
    and not (${waits} and mode = 'resume') limit 1`;
/** Looks at every blocked run, so not for procedural ones: there are many, and none is ever forked. */
const selectForks = `
  select run_no from agent_revs cross join runs indexed by runs_blocked
  where agent_revs.agent_rev_id = ?1 and agent_revs.type <> 'procedural'
    and forked_from = ?2 and mode = 'fork' and ${waits} and (run_id < ?3 or ?3 is null)`;
const selectBefore = `
  select distinct demand_id from runs indexed by runs_before_directory
  where directory = ? and status = 'pending' and blocked_by = 'directory'`;
const selectFirst = `
  select run_no, demands.body from runs indexed by runs_before_directory join demands using (demand_id)
  where directory = ? and runs.demand_id = ? and status = 'pending' and blocked_by = 'directory'
  order by priority desc, run_id limit 1`;
const unblock = `
  update runs set blocked_by = null where run_no = ?`;

/** A run that no longer works makes room under its agent's cap, if there is one. */
export function* freeCap(tx: Transaction, run: StoredRun & Partial<EndingRun>): Work<void> {
  if (run.agent_rev_id === null || run.cap_agent === null) return;
  for (const row of yield all(selectSharers, run.demand_id)) claimable(tx, String(row["body"]));
}

/**
 * A run that has ended lets the next one of its session go, and the forks that were asked for before that one. A
 * resume that was itself blocked held nobody up.
 */
export function* freeSession(tx: Transaction, run: StoredRun & Partial<EndingRun>): Work<void> {
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
    tx.changed.claimable.push(yield* pinToSession(tx, run_no, session_id));
  }
}

/**
 * A run that no longer works in its directory lets the next one go: one of each demand, as one that no runner
 * can take would hold up the others. Which of them is first, claims decide; the rest are blocked again there.
 */
export function* freeDirectory(tx: Transaction, run: Pick<StoredRun, "directory" | "blocked_by">): Work<void> {
  if (run.directory === null || run.blocked_by === "directory") return;
  for (const row of yield all(selectBefore, run.directory)) {
    const [next] = yield first(selectFirst, run.directory, Number(row["demand_id"]));
    if (next === undefined) continue;
    yield write(unblock, Number(next["run_no"]));
    claimable(tx, String(next["body"]));
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
 * A run that has ended lets the next one of its schedule go. One that ended while it waited itself leaves the next one to
 * wait for the run before it.
 */
export function* freeSchedule(tx: Transaction, run: StoredRun & Partial<EndingRun>): Work<void> {
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
    claimable(tx, String(demand?.["body"]));
  }
}

export function claimable(tx: Transaction, body: string, at_once = false): void {
  // Written from a run's demands by create_run.
  const demands = JSON.parse(body) as Demands;
  if (at_once) (tx.changed.resumed ??= []).push(demands);
  else tx.changed.claimable.push(demands);
}
