import type { Demands } from "../../model/run.ts";
import type { Transaction } from "../transaction.ts";
import { pinToSession } from "./pin-to-session.ts";
import type { StoredRun } from "./run-state.ts";

const selectSharers = `
  select other.body from demands own join demands other on other.cap_agent = own.cap_agent where own.demand_id = ?`;
const waits = `status = 'pending' and blocked_by = 'session'`;
const selectNext = `
  select run_no, demand_id, run_id from runs where session_id = ? and ${waits} order by run_id limit 1`;
/** A fork that waits for its origin is the first of its own session all the same. */
const selectHolder = `
  select 1 from runs where session_id = ? and status in ('pending', 'claimed', 'running', 'waiting', 'parked', 'stopping')
    and not (${waits} and mode = 'resume') limit 1`;
/** Looks at every blocked run, so not for procedural ones: there are many, and none is ever forked. */
const selectForks = `
  select run_no, demand_id from agent_revs cross join runs indexed by runs_blocked
  where agent_revs.agent_rev_id = ?1 and json_extract(agent_revs.body, '$.type') <> 'procedural'
    and forked_from = ?2 and mode = 'fork' and ${waits} and (?3 is null or run_id < ?3)`;
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
export function freeCap(tx: Transaction, run: StoredRun): void {
  if (run.agent_rev_id === null) return;
  for (const row of tx.sql(selectSharers).all(run.demand_id)) claimable(tx, String(row["body"]));
}

/**
 * A run that has ended lets the next one of its session go, and the forks that were asked for before that one. A
 * resume that was itself blocked held nobody up.
 */
export function freeSession(tx: Transaction, run: StoredRun): void {
  const { agent_rev_id, session_id } = run;
  if (agent_rev_id === null || session_id === null) return;
  if (run.blocked_by === "session" && tx.sql(selectHolder).get(session_id) !== undefined) return;
  const next = tx.sql(selectNext).get(session_id);
  const forks = tx.sql(selectForks).all(agent_rev_id, session_id, next?.["run_id"] ?? null);
  for (const row of next === undefined ? forks : [...forks, next]) {
    const run_no = Number(row["run_no"]);
    tx.sql(unblock).run(run_no);
    tx.changed.claimable.push(pinToSession(tx, { run_no, demand_id: Number(row["demand_id"]) }, session_id));
  }
}

/**
 * A run that no longer works in its directory lets the next one go: one of each demand, as one that no runner
 * can take would hold up the others. Which of them is first, claims decide; the rest are blocked again there.
 */
export function freeDirectory(tx: Transaction, run: Pick<StoredRun, "directory" | "blocked_by">): void {
  if (run.directory === null || run.blocked_by === "directory") return;
  for (const row of tx.sql(selectBefore).all(run.directory)) {
    const next = tx.sql(selectFirst).get(run.directory, Number(row["demand_id"]));
    if (next === undefined) continue;
    tx.sql(unblock).run(Number(next["run_no"]));
    claimable(tx, String(next["body"]));
  }
}

export function claimable(tx: Transaction, body: string): void {
  // Written from a run's demands by create_run.
  tx.changed.claimable.push(JSON.parse(body) as Demands);
}
