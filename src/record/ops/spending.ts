import type { Agent } from "../../model/agent.ts";
import { readAgentSnapshot } from "../moves/agent-snapshot.ts";
import { endRun } from "../moves/lose-run.ts";
import { park } from "../moves/park.ts";
import type { StoredRun } from "../moves/stored-run.ts";
import { toDay } from "../moves/usage.ts";
import { first, write, type Row, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import type { QueueHead } from "./pick-runs.ts";
import { parseExecutor, type StoredRunner } from "./runner-row.ts";

const selectSpent = `
  select sum(input_tokens + output_tokens) as tokens, sum(cost_usd) as cost_usd from usage_days
  where agent_name = (select agent_name from runs where run_no = ?) and day = ?`;
const selectLimit = `select until from usage_limits where provider = ? and place = ? and until > ?`;
const setLimit = `
  insert into usage_limits (provider, place, until) values (?, ?, ?)
  on conflict (provider, place) do update set until =
    case when excluded.until > usage_limits.until then excluded.until else usage_limits.until end`;
const selectHolder = `select runner_id, place_id, executor from runners where runner_id = ?`;

/** Whether a usage limit applies to the runner. The outer statement provides `runners`. */
export const hasLimits = (now: string): string => `exists (
      select 1 from usage_limits where usage_limits.place = coalesce(runners.place_id, runners.runner_id) and until > ${now})`;

/** Returns the agent and a message if its daily budget is spent. null if it is not, or if there is no daily budget. */
export function* findSpentBudget(tx: Transaction, run: StoredRun): Work<{ message: string; agent: Agent } | null> {
  if (run.budgeted !== 1) return null;
  const agent = yield* readAgentSnapshot(run);
  const limit = agent?.budget?.per_day;
  if (agent === null || limit === undefined) return null;
  const [spent = {}] = yield first(selectSpent, run.run_no, toDay(tx.now));
  const [tokens, cost] = [Number(spent["tokens"] ?? 0), Number(spent["cost_usd"] ?? 0)];
  if (limit.cost_usd !== undefined && cost >= limit.cost_usd)
    return { agent, message: `Its agent has spent $${cost.toFixed(4)} today; its budget is $${limit.cost_usd} a day.` };
  if (limit.tokens !== undefined && tokens >= limit.tokens)
    return { agent, message: `Its agent has used ${tokens} tokens today; its budget is ${limit.tokens} a day.` };
  return null;
}

export function getNextDay(now: Date): string {
  return new Date(Date.parse(`${toDay(now)}T00:00:00.000Z`) + 24 * 60 * 60 * 1000).toISOString();
}

/** Parks or fails a run that exceeds its budget or a usage limit. Returns false if the run may be handed out. */
export function* parkIfLimited(tx: Transaction, runner: StoredRunner, head: QueueHead): Work<boolean> {
  if (head.resumed === 1) return false;
  const isLimited = runner.row["has_limits"] === 1;
  if (head.budgeted !== 1 && !isLimited) return false;
  const run = { ...head, run_id: fromColumn(head.run_id) };
  const spent = yield* findSpentBudget(tx, run);
  if (spent !== null) {
    if (spent.agent.budget?.when_spent === "fail") yield* endRun(tx, run, "failed", "budget_exceeded", spent.message);
    else yield* park(tx, run, { reason: "budget", until: getNextDay(tx.now), message: spent.message });
    return true;
  }
  const limit = isLimited ? yield* findLimit(tx, runner.row, yield* readAgentSnapshot(run)) : null;
  if (limit === null) return false;
  yield* park(tx, run, { reason: "usage_limit", ...limit });
  return true;
}

function* findLimit(
  tx: Transaction,
  runner: Row,
  agent: Agent | null,
): Work<{ until: string; message: string } | null> {
  if (agent === null || agent.on_usage_limit === "fail") return null;
  const provider = findProvider(agent, runner);
  const [row] = yield first(selectLimit, provider, getLimitKey(runner), tx.now.getTime());
  if (row === undefined) return null;
  const until = new Date(Number(row["until"])).toISOString();
  return { until, message: formatLimitMessage(fromColumn(provider), until) };
}

/** Records a usage limit for all runs that use the same provider from the same state directory. */
export function* shareLimit(tx: Transaction, run: StoredRun, agent: Agent, until: string): Work<void> {
  if (run.runner_id === null) return;
  const [runner] = yield first(selectHolder, run.runner_id);
  if (runner !== undefined) yield write(setLimit, findProvider(agent, runner), getLimitKey(runner), Date.parse(until));
}

export function formatLimitMessage(provider: string, until: string): string {
  return `The usage limit of ${provider} is reached until ${until}.`;
}

/** The provider's name, encoded: from the agent, else from the runner's profile, else the executor type. */
function findProvider(agent: Agent, runner: Row): string {
  const { type, config } = parseExecutor(runner);
  const named = agent.provider ?? config["provider"];
  return toColumn(typeof named === "string" ? named : type);
}

/** Runners of one state directory share the usage limits of their accounts. */
function getLimitKey({ place_id, runner_id }: Row): string {
  return String(place_id ?? runner_id);
}
