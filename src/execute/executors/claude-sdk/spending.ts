import type { Query } from "../../../llm/claude-code/sdk.ts";
import type { Agent } from "../../../model/agent.ts";
import type { Usage } from "../../../model/event.ts";
import type { RunContext } from "../../../model/executor.ts";
import type { createUsageMeter } from "../clients/claude-usage.ts";
import { type Fields, toFields, toNumber } from "../clients/fields.ts";
import { nextDay } from "../loop/budget-keeper.ts";

/** The usage of a run, including its earlier attempts. */
export interface RunUsage {
  turns: number;
  tokens: number;
  cost_usd: number;
}

/** Counts a run's usage and checks it against the budget. */
export interface Spending {
  addUsage(usage: Usage): void;
  /** Call this after the SDK has initialized, before its first request. */
  start(query: Query): Promise<void>;
  observeResult(result: Fields): void;
  /** Call this between two requests. Reports whether the budget allows another request. */
  mayRequest(query: Query): Promise<boolean>;
  /** Set once the budget is spent. `until` is set if the budget renews automatically. */
  readonly exceeded: { message: string; until?: string } | null;
  /** Grants the run its whole budget again. */
  renew(): void;
}

export function createSpending(
  limits: Agent["budget"],
  runUsage: RunUsage,
  meter: ReturnType<typeof createUsageMeter>,
  context: Pick<RunContext, "usage" | "overBudget">,
): Spending {
  const hasCostBudget = limits?.cost_usd !== undefined || limits?.per_day?.cost_usd !== undefined;
  /** The session's total cost in USD. */
  let costAtLastResult = 0;
  let exceeded: Spending["exceeded"] = null;

  function addUsage(usage: Usage): void {
    if (usage.cost_usd === null) runUsage.turns += 1;
    runUsage.tokens += usage.input_tokens + usage.output_tokens;
    runUsage.cost_usd += usage.cost_usd ?? 0;
    context.usage(usage);
  }

  /** The SDK reports the cost only with its result, but a budget needs it after each answer. */
  async function readTotalCost(query: Query): Promise<number | null> {
    if (!hasCostBudget) return null;
    const usageReport = await query.usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET?.();
    return toNumber(toFields(toFields(usageReport)["session"])["total_cost_usd"]);
  }

  return {
    addUsage,
    async start(query) {
      costAtLastResult = (await readTotalCost(query)) ?? costAtLastResult;
    },
    observeResult(result) {
      costAtLastResult = toNumber(result["total_cost_usd"]) ?? costAtLastResult;
    },
    async mayRequest(query) {
      const total = await readTotalCost(query);
      const usage = total === null ? null : meter.addCost(total - costAtLastResult);
      if (usage) addUsage(usage);
      const message = describeOverspend(limits, runUsage);
      if (context.overBudget.aborted)
        exceeded ??= { message: dailyBudgetSpent, until: nextDay(new Date()).toISOString() };
      else if (message !== null) exceeded ??= { message };
      return exceeded === null;
    },
    get exceeded() {
      return exceeded;
    },
    renew: () => void Object.assign(runUsage, { turns: 0, tokens: 0, cost_usd: 0 }),
  };
}

const dailyBudgetSpent = "The agent has spent its budget for today (`budget.per_day`).";

/** Describes the limit that the run has reached; null if it has reached none. */
export function describeOverspend(limits: Agent["budget"], runUsage: RunUsage): string | null {
  const { cost_usd, tokens, turns } = limits ?? {};
  if (cost_usd !== undefined && runUsage.cost_usd >= cost_usd)
    return `The run has spent ${Math.round(runUsage.cost_usd * 1e6) / 1e6} USD. Its budget is ${cost_usd} USD.`;
  if (tokens !== undefined && runUsage.tokens >= tokens)
    return `The run has used ${runUsage.tokens} tokens. Its budget is ${tokens}.`;
  if (turns !== undefined && runUsage.turns >= turns)
    return `The run has used ${runUsage.turns} turns. Its budget is ${turns}.`;
  return null;
}
