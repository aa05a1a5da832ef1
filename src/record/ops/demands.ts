import { sha256 } from "../../model/hmac.ts";
import type { Demands } from "../../model/run.ts";
import { findUnmetDemands } from "../matching.ts";
import { all, first, write, type Row, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { toCanonicalJson } from "./canonical-json.ts";
import { toRunnerFacts } from "./runner-row.ts";

/** The max_concurrent of an agent. `runner_id` is set for an agent that only this runner offers. */
export interface Cap {
  agent_name: string;
  runner_id: string | null;
  max: number;
}

const selectDemand = `
  select demand_id, unmatched_since, exists (select 1 from demand_matches m where m.demand_id = demands.demand_id) as matched
  from demands where key = ?`;
const insertDemand = `
  insert into demands (key, body, cap, cap_agent, cap_runner) values (?, ?, ?, ?, ?)
  on conflict (key) do update set key = excluded.key returning demand_id`;
const setUnmatched = `
  update demands set unmatched_since = ? where demand_id = ?`;
const selectLiveRunners = `
  select * from runners where status <> 'lost'`;
const insertMatch = `
  insert into demand_matches (runner_id, demand_id) values (?, ?) on conflict do nothing`;
const deleteMatches = `
  delete from demand_matches where runner_id = ?`;
const clearUnmatched = `
  update demands set unmatched_since = null
  where unmatched_since is not null and demand_id in (select demand_id from demand_matches where runner_id = ?)`;
const markUnmatched = `
  update demands set unmatched_since = ?
  where unmatched_since is null and demand_id in (select demand_id from demand_matches where runner_id = ?)
    and not exists (select 1 from demand_matches m where m.demand_id = demands.demand_id and m.runner_id <> ?)`;

/** The row for runs that any runner may take. The first migration creates it. */
const noDemandId = 1;
/** In characters. A character has at most three bytes. */
const maxKeyLength = 800;

/** Runs with equal demands share one row, so that a claim checks a few queue heads instead of all runs. */
export function* findOrCreateDemand(tx: Transaction, demands: Demands): Work<number> {
  const body = toCanonicalJson(demands);
  if (body === "{}") return noDemandId;
  const key = toDemandKey(body);
  const [existing] = yield first(selectDemand, key);
  return existing === undefined ? yield* createDemand(tx, key, demands, null) : Number(existing["demand_id"]);
}

/** Like findOrCreateDemand, for a run that runners claim. Also stores since when no runner has matched. */
export function* findOrCreateClaimableDemand(tx: Transaction, demands: Demands, cap: Cap | null): Work<number> {
  const key = toDemandKey(toCanonicalJson(cap === null ? demands : { demands, cap }));
  const [existing] = yield first(selectDemand, key);
  if (existing === undefined) return yield* createDemand(tx, key, demands, cap);
  const demandId = Number(existing["demand_id"]);
  if (existing["matched"] === 0 && existing["unmatched_since"] === null)
    yield write(setUnmatched, tx.now.getTime(), demandId);
  return demandId;
}

/** PostgreSQL cannot index text of more than about 2,700 bytes, so long demands are found by their hash. */
function toDemandKey(body: string): string {
  return body.length <= maxKeyLength ? body : `sha256:${Buffer.from(sha256(Buffer.from(body))).toString("hex")}`;
}

function* createDemand(tx: Transaction, key: string, demands: Demands, cap: Cap | null): Work<number> {
  const values = [
    key,
    toCanonicalJson(demands),
    cap?.max ?? null,
    toColumn(cap?.agent_name ?? null),
    toColumn(cap?.runner_id ?? null),
  ];
  const [inserted] = yield first(insertDemand, ...values);
  const demandId = Number(inserted?.["demand_id"]);
  let matched = false;
  for (const runner of yield all(selectLiveRunners))
    matched = (yield* matchDemand(runner, demandId, demands)) || matched;
  if (!matched) yield write(setUnmatched, tx.now.getTime(), demandId);
  return demandId;
}

function* matchDemand(runner: Row, demandId: number, demands: Demands): Work<boolean> {
  if (findUnmetDemands(demands, toRunnerFacts(runner)).length > 0) return false;
  yield write(insertMatch, runner["runner_id"]!, demandId);
  return true;
}

const selectDemands = `select demand_id, body from demands`;

/** Matches a runner that has just registered against all demands. */
export function* matchRunner(tx: Transaction, runner: Row): Work<void> {
  yield* unmatchRunner(tx, String(runner["runner_id"]));
  for (const row of yield all(selectDemands)) {
    // createDemand wrote this value from a run's demands.
    yield* matchDemand(runner, Number(row["demand_id"]), JSON.parse(String(row["body"])) as Demands);
  }
  yield write(clearUnmatched, runner["runner_id"]!);
}

/** Removes a runner's matches. `runnerId` is the encoded id. */
export function* unmatchRunner(tx: Transaction, runnerId: string): Work<void> {
  yield write(markUnmatched, tx.now.getTime(), runnerId, runnerId);
  yield write(deleteMatches, runnerId);
}
