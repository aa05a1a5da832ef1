import type { Demands } from "../../model/run.ts";
import { parseShortLivedName } from "../../model/short-lived-runner.ts";
import { all, first, write, type Row, type SqlValue, type Work } from "../query.ts";
import { isClaimable } from "../moves/statuses.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import { toCanonicalJson } from "./canonical-json.ts";
import { type Cap, findOrCreateClaimableDemand } from "./demands.ts";

/** How long a run waits for a runner that already has its session before any runner may take it. */
export const preferMs = 5000;

const selectLocation = `
  select hostname, executor_profile, place_id, runner_id,
    (select portable from session_states where session_states.session_id = sessions.session_id) as portable
  from sessions where session_id = ? and runner_id is not null`;
const selectDemand = `
  select demands.body, cap, cap_agent, cap_runner, demands_after
  from runs join demands using (demand_id) where run_no = ?`;
const isMatched = `select 1 from demand_matches where demand_id = ? limit 1`;
const updatePlacement = `update runs set demand_id = ?, prefer_until = ?, demands_after = ? where run_no = ?`;

const isRegistered = `select 1 from runners where runner_id = ? and status <> 'lost'`;
/** Finds demands for a short-lived runner by the prefix of its id. `releaseFromCommand` checks them exactly. */
const selectStranded = `
  select run_no, session_id, resumed from runs indexed by runs_to_claim
  where demand_id in (select demand_id from demands where unmatched_since is not null and body like '%"runner_id":"run-%')
    and ${isClaimable} and session_id is not null limit ?`;
const maxReleased = 100;

/** The columns of a run that decide which runners may take it. */
export interface Placement extends Record<string, SqlValue> {
  demand_id: number;
  prefer_until: number | null;
  demands_after: string | null;
}

/**
 * Decides which runners may take a run that continues a session: those of the state directory that has the session. If the
 * record contains everything needed to continue elsewhere, they only have priority for a while, provided that any are
 * registered. `session` is the encoded id.
 */
export function* placeInSession(
  tx: Transaction,
  run_no: number,
  session: string,
): Work<{ demands: Demands; columns: Placement | null }> {
  const [row = {}] = yield first(selectDemand, run_no);
  // Both columns hold a run's demands.
  const runDemands = JSON.parse(String(row["demands_after"] ?? row["body"])) as Demands;
  const [location] = yield first(selectLocation, session);
  if (location === undefined || runDemands.place_id !== undefined) return { demands: runDemands, columns: null };
  const cap = toCap(row);
  if (runDemands.runner_id !== undefined)
    return (yield* releaseFromCommand(tx, runDemands, location, cap)) ?? { demands: runDemands, columns: null };
  const pinned = { ...runDemands };
  const pinKey = location["place_id"] === null ? "runner_id" : "place_id";
  for (const name of ["hostname", "executor_profile", pinKey] as const)
    pinned[name] = fromColumn(String(location[name]));
  const demand_id = yield* findOrCreateClaimableDemand(tx, pinned, cap);
  if (location["portable"] !== 1) {
    // Without a saved state the conversation exists only there, so the demand must not be widened.
    const demands_after = location["portable"] === null ? null : toCanonicalJson(runDemands);
    return { demands: pinned, columns: { demand_id, prefer_until: null, demands_after } };
  }
  const portableDemands = { ...runDemands, executor_profile: fromColumn(String(location["executor_profile"])) };
  const [matched] = yield first(isMatched, demand_id);
  if (matched === undefined) {
    const wider = yield* findOrCreateClaimableDemand(tx, portableDemands, cap);
    return { demands: portableDemands, columns: { demand_id: wider, prefer_until: null, demands_after: null } };
  }
  const prefer_until = tx.now.getTime() + preferMs;
  return { demands: pinned, columns: { demand_id, prefer_until, demands_after: toCanonicalJson(portableDemands) } };
}

/**
 * Lets another runner of the same state directory continue a run whose own short-lived runner no longer exists, because the
 * command that created both has ended. Returns null if no other runner matches; the run then waits for a command that
 * reuses the runner's name.
 */
function* releaseFromCommand(
  tx: Transaction,
  { runner_id, ...otherDemands }: Demands,
  location: Row,
  cap: Cap | null,
): Work<{ demands: Demands; columns: Placement } | null> {
  if (parseShortLivedName(runner_id) === null || typeof location["place_id"] !== "string") return null;
  const [registered] = yield first(isRegistered, toColumn(runner_id ?? null));
  if (registered !== undefined) return null;
  const demands = { ...otherDemands };
  for (const name of ["hostname", "executor_profile", "place_id"] as const)
    demands[name] = fromColumn(String(location[name]));
  const demand_id = yield* findOrCreateClaimableDemand(tx, demands, cap);
  const [matched] = yield first(isMatched, demand_id);
  return matched === undefined ? null : { demands, columns: { demand_id, prefer_until: null, demands_after: null } };
}

/** Releases runs that were answered or resumed while no runner could take them. */
export function* releaseStranded(tx: Transaction): Work<void> {
  for (const row of yield all(selectStranded, maxReleased)) {
    const run_no = Number(row["run_no"]);
    const { demands, columns } = yield* placeInSession(tx, run_no, String(row["session_id"]));
    if (columns === null) continue;
    yield write(updatePlacement, columns.demand_id, columns.prefer_until, columns.demands_after, run_no);
    (row["resumed"] === 1 ? (tx.changes.resumed ??= []) : tx.changes.claimable).push(demands);
  }
}

/** Applies placeInSession to a run that is stored as pending. Returns its new demands. */
export function* pinToSession(tx: Transaction, run_no: number, session: string): Work<Demands> {
  const { demands, columns } = yield* placeInSession(tx, run_no, session);
  if (columns !== null) {
    const { demand_id, prefer_until, demands_after } = columns;
    yield write(updatePlacement, demand_id, prefer_until, demands_after, run_no);
  }
  return demands;
}

/** Lets any runner take a run that no preferred runner took in time. */
export function* widenDemands(tx: Transaction, run_no: number): Work<Demands> {
  const [row = {}] = yield first(selectDemand, run_no);
  // placeInSession wrote this value.
  const demands = JSON.parse(String(row["demands_after"])) as Demands;
  yield write(updatePlacement, yield* findOrCreateClaimableDemand(tx, demands, toCap(row)), null, null, run_no);
  return demands;
}

const selectHost = `
  select sessions.hostname, sessions.place_id, sessions.runner_id, demands.body
  from runs join demands using (demand_id) join sessions on sessions.session_id = coalesce(runs.forked_from, runs.session_id)
  where runs.run_no = ? and (runs.mode <> 'start' or runs.demands_after is not null) and runs.prefer_until is null`;

/** The host of the session that a run continues, if the run has to continue there; null if it may go elsewhere. */
export function* findSessionHost(run_no: number): Work<string | null> {
  const [row] = yield first(selectHost, run_no);
  if (row === undefined || row["hostname"] === null) return null;
  // create_run wrote this value from a run's demands.
  const { place_id, runner_id } = JSON.parse(String(row["body"])) as Demands;
  const isPinned = [place_id, runner_id].some(
    (demanded, index) => demanded !== undefined && toColumn(demanded) === row[["place_id", "runner_id"][index]!],
  );
  return isPinned ? fromColumn(String(row["hostname"])) : null;
}

export function formatPinnedSessionMessage(hostname: string): string {
  return `Its session exists only on ${hostname}: it works in a project there, or its files were not saved. Start its runner there again, or start a new session.`;
}

function toCap({ cap, cap_agent, cap_runner }: Row): Cap | null {
  if (typeof cap !== "number" || typeof cap_agent !== "string") return null;
  const runner_id = typeof cap_runner === "string" ? fromColumn(cap_runner) : null;
  return { agent_name: fromColumn(cap_agent), runner_id, max: cap };
}
