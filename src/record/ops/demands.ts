import { createHash } from "node:crypto";
import type { Demands } from "../../model/run.ts";
import { unmetDemands } from "../matching.ts";
import { all, first, write, type Row, type Work } from "../query.ts";
import { toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { canonical } from "./canonical-json.ts";
import { factsFromRow } from "./runner-row.ts";

/** max_concurrent of an agent. With `runner_id`, of an agent that only this runner offers. */
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
const liveRunners = `
  select * from runners where status <> 'lost'`;
const insertMatch = `
  insert into demand_matches (runner_id, demand_id) values (?, ?) on conflict do nothing`;
const deleteMatches = `
  delete from demand_matches where runner_id = ?`;
const nowMatched = `
  update demands set unmatched_since = null
  where unmatched_since is not null and demand_id in (select demand_id from demand_matches where runner_id = ?)`;
const nowUnmatched = `
  update demands set unmatched_since = ?
  where unmatched_since is null and demand_id in (select demand_id from demand_matches where runner_id = ?)
    and not exists (select 1 from demand_matches m where m.demand_id = demands.demand_id and m.runner_id <> ?)`;

/** The row, created by the first migration, for runs that any runner may take. */
const noDemand = 1;
/** In characters, each of at most three bytes. */
const maxKeyLength = 800;

/** Runs with equal demands share one row, so that a claim checks a few queue heads instead of all runs. */
export function* demandOf(tx: Transaction, demands: Demands): Work<number> {
  const body = canonical(demands);
  if (body === "{}") return noDemand;
  const key = keyOf(body);
  const [known] = yield first(selectDemand, key);
  return known === undefined ? yield* newDemand(tx, key, demands, null) : Number(known["demand_id"]);
}

/** Like demandOf, for a run that runners claim. Also records since when no runner matches. */
export function* claimableDemandOf(tx: Transaction, demands: Demands, cap: Cap | null): Work<number> {
  const key = keyOf(canonical(cap === null ? demands : { demands, cap }));
  const [known] = yield first(selectDemand, key);
  if (known === undefined) return yield* newDemand(tx, key, demands, cap);
  const demandId = Number(known["demand_id"]);
  if (known["matched"] === 0 && known["unmatched_since"] === null)
    yield write(setUnmatched, tx.now.getTime(), demandId);
  return demandId;
}

/** PostgreSQL cannot index a text of more than about 2,700 bytes, so long demands are found by their hash. */
function keyOf(body: string): string {
  return body.length <= maxKeyLength ? body : `sha256:${createHash("sha256").update(body).digest("hex")}`;
}

function* newDemand(tx: Transaction, key: string, demands: Demands, cap: Cap | null): Work<number> {
  const values = [
    key,
    canonical(demands),
    cap?.max ?? null,
    toColumn(cap?.agent_name ?? null),
    toColumn(cap?.runner_id ?? null),
  ];
  const [inserted] = yield first(insertDemand, ...values);
  const demandId = Number(inserted?.["demand_id"]);
  let matched = false;
  for (const runner of yield all(liveRunners)) matched = (yield* matchOne(runner, demandId, demands)) || matched;
  if (!matched) yield write(setUnmatched, tx.now.getTime(), demandId);
  return demandId;
}

function* matchOne(runner: Row, demandId: number, demands: Demands): Work<boolean> {
  if (unmetDemands(demands, factsFromRow(runner)).length > 0) return false;
  yield write(insertMatch, runner["runner_id"]!, demandId);
  return true;
}

const allDemands = `select demand_id, body from demands`;

/** Matches a new runner, or one that registered again with other facts, against all demands. */
export function* matchRunner(tx: Transaction, runner: Row): Work<void> {
  yield* unmatchRunner(tx, String(runner["runner_id"]));
  for (const row of yield all(allDemands)) {
    // newDemand wrote it from a run's demands.
    yield* matchOne(runner, Number(row["demand_id"]), JSON.parse(String(row["body"])) as Demands);
  }
  yield write(nowMatched, runner["runner_id"]!);
}

/** Removes a runner's matches. `runnerId` is the stored text. */
export function* unmatchRunner(tx: Transaction, runnerId: string): Work<void> {
  yield write(nowUnmatched, tx.now.getTime(), runnerId, runnerId);
  yield write(deleteMatches, runnerId);
}
