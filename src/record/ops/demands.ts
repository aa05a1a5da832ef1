import type { Demands } from "../../model/run.ts";
import { unmetDemands } from "../matching.ts";
import type { Row } from "../sqlite/driver.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { canonical } from "./canonical.ts";
import { factsFromRow } from "./runner-row.ts";

/** max_concurrent of an agent; of one runner's own agent where `runner_id` is given. */
export interface Cap {
  agent_name: string;
  runner_id: string | null;
  max: number;
}

const selectDemand = `
  select demand_id, unmatched_since, exists (select 1 from demand_matches m where m.demand_id = demands.demand_id) as matched
  from demands where key = ?`;
const insertDemand = `
  insert into demands (key, body, cap, cap_agent, cap_runner) values (?, ?, ?, ?, ?)`;
const setUnmatched = `
  update demands set unmatched_since = ? where demand_id = ?`;
const liveRunners = `
  select * from runners where status <> 'lost'`;
const insertMatch = `
  insert or ignore into demand_matches (runner_id, demand_id) values (?, ?)`;
const deleteMatches = `
  delete from demand_matches where runner_id = ?`;
const nowMatched = `
  update demands set unmatched_since = null
  where unmatched_since is not null and demand_id in (select demand_id from demand_matches where runner_id = ?)`;
const nowUnmatched = `
  update demands set unmatched_since = ?
  where unmatched_since is null and demand_id in (select demand_id from demand_matches where runner_id = ?)
    and not exists (select 1 from demand_matches m where m.demand_id = demands.demand_id and m.runner_id <> ?)`;

/** The row that the first migration brings for runs that any runner may take. */
const noDemand = 1;

/** Runs with equal demands share one row, so that a claim looks at few heads instead of all runs. */
export function demandOf(tx: Transaction, demands: Demands): number {
  const body = canonical(demands);
  if (body === "{}") return noDemand;
  const known = tx.sql(selectDemand).get(body);
  return known === undefined ? newDemand(tx, body, demands, null) : Number(known["demand_id"]);
}

/** The same for a run that runners claim: notes since when there is nobody who could take it. */
export function claimableDemandOf(tx: Transaction, demands: Demands, cap: Cap | null): number {
  const key = canonical(cap === null ? demands : { demands, cap });
  const known = tx.sql(selectDemand).get(key);
  if (known === undefined) return newDemand(tx, key, demands, cap);
  const demandId = Number(known["demand_id"]);
  if (known["matched"] === 0 && known["unmatched_since"] === null) tx.sql(setUnmatched).run(tx.now.getTime(), demandId);
  return demandId;
}

function newDemand(tx: Transaction, key: string, demands: Demands, cap: Cap | null): number {
  const values = [
    key,
    canonical(demands),
    cap?.max ?? null,
    toColumn(cap?.agent_name ?? null),
    toColumn(cap?.runner_id ?? null),
  ];
  const demandId = Number(tx.sql(insertDemand).run(...values).lastInsertRowid);
  let matched = false;
  for (const runner of tx.sql(liveRunners).all()) matched = matchOne(tx, runner, demandId, demands) || matched;
  if (!matched) tx.sql(setUnmatched).run(tx.now.getTime(), demandId);
  return demandId;
}

function matchOne(tx: Transaction, runner: Row, demandId: number, demands: Demands): boolean {
  if (unmetDemands(demands, factsFromRow(runner)).length > 0) return false;
  tx.sql(insertMatch).run(runner["runner_id"]!, demandId);
  return true;
}

const allDemands = `select demand_id, body from demands`;

/** A runner that has come, or come again with other facts. */
export function matchRunner(tx: Transaction, runner: Row): void {
  unmatchRunner(tx, String(runner["runner_id"]));
  for (const row of tx.sql(allDemands).all()) {
    // Written from a run's demands by newDemand.
    matchOne(tx, runner, Number(row["demand_id"]), JSON.parse(String(row["body"])) as Demands);
  }
  tx.sql(nowMatched).run(runner["runner_id"]!);
}

/** A runner that has gone. `runnerId` as stored. */
export function unmatchRunner(tx: Transaction, runnerId: string): void {
  tx.sql(nowUnmatched).run(tx.now.getTime(), runnerId, runnerId);
  tx.sql(deleteMatches).run(runnerId);
}
