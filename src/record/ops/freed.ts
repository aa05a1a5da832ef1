import type { Demands } from "../../model/run.ts";
import type { Transaction } from "../transaction.ts";
import type { StoredRun } from "./run-state.ts";

const selectSharers = `
  select other.body from demands own join demands other on other.cap_agent = own.cap_agent where own.demand_id = ?`;
const selectNext = `
  select run_no, demands.body from runs join demands using (demand_id)
  where session_id = ? and status = 'pending' and blocked_by is not null order by run_id limit 1`;
const unblock = `
  update runs set blocked_by = null where run_no = ?`;

/** A run that no longer works makes room under its agent's cap, if there is one. */
export function freeCap(tx: Transaction, run: StoredRun): void {
  if (run.agent_rev_id === null) return;
  for (const row of tx.sql(selectSharers).all(run.demand_id)) claimable(tx, String(row["body"]));
}

/** A run that has ended lets the next one of its session go. One that was itself blocked held nobody up. */
export function freeSession(tx: Transaction, run: StoredRun): void {
  if (run.agent_rev_id === null || run.session_id === null || run.blocked_by !== null) return;
  const next = tx.sql(selectNext).get(run.session_id);
  if (next === undefined) return;
  tx.sql(unblock).run(Number(next["run_no"]));
  claimable(tx, String(next["body"]));
}

export function claimable(tx: Transaction, body: string): void {
  // Written from a run's demands by create_run.
  tx.changed.claimable.push(JSON.parse(body) as Demands);
}
