import type { Query } from "../../../llm/claude-code/sdk.ts";
import type { Agent } from "../../../model/agent.ts";
import type { Usage } from "../../../model/event.ts";
import type { RunContext } from "../../../model/executor.ts";
import type { createUsageMeter } from "../clients/claude-usage.ts";
import { type Fields, fieldsOf, numberOf } from "../clients/fields.ts";
import { nextDay } from "../loop/budget-keeper.ts";

/** What a run has used, including its earlier attempts. */
export interface Spent {
  turns: number;
  tokens: number;
  cost_usd: number;
}

/** Counts what a run uses and checks it against the budget. */
export interface Spending {
  usage(usage: Usage): void;
  /** Call this once the SDK is ready, before its first request. */
  start(query: Query): Promise<void>;
  observeResult(result: Fields): void;
  /** Call this between two requests. Returns whether another one is allowed. */
  mayAsk(query: Query): Promise<boolean>;
  /** Why no further request was allowed. `until` is set if the budget renews by itself. */
  readonly over: { message: string; until?: string } | null;
  /** Lets the run spend its budget once more. */
  renew(): void;
}

export function createSpending(
  limits: Agent["budget"],
  spent: Spent,
  meter: ReturnType<typeof createUsageMeter>,
  context: Pick<RunContext, "usage" | "overBudget">,
): Spending {
  const countsCost = limits?.cost_usd !== undefined || limits?.per_day?.cost_usd !== undefined;
  /** The session's total cost at its last result. */
  let costBefore = 0;
  let over: Spending["over"] = null;

  function usage(used: Usage): void {
    if (used.cost_usd === null) spent.turns += 1;
    spent.tokens += used.input_tokens + used.output_tokens;
    spent.cost_usd += used.cost_usd ?? 0;
    context.usage(used);
  }

  /** The SDK reports the cost only with its result, but a budget needs it after each answer. */
  async function totalCost(query: Query): Promise<number | null> {
    if (!countsCost) return null;
    const reported = await query.usage_EXPERIMENTAL_MAY_CHANGE_DO_NOT_RELY_ON_THIS_API_YET?.();
    return numberOf(fieldsOf(fieldsOf(reported)["session"])["total_cost_usd"]);
  }

  return {
    usage,
    async start(query) {
      costBefore = (await totalCost(query)) ?? costBefore;
    },
    observeResult(result) {
      costBefore = numberOf(result["total_cost_usd"]) ?? costBefore;
    },
    async mayAsk(query) {
      const total = await totalCost(query);
      const used = total === null ? null : meter.ofCost(total - costBefore);
      if (used) usage(used);
      const message = overBudget(limits, spent);
      if (context.overBudget.aborted) over ??= { message: dailyBudgetSpent, until: nextDay(new Date()).toISOString() };
      else if (message !== null) over ??= { message };
      return over === null;
    },
    get over() {
      return over;
    },
    renew: () => void Object.assign(spent, { turns: 0, tokens: 0, cost_usd: 0 }),
  };
}

const dailyBudgetSpent = "The agent has spent its budget for today (`budget.per_day`).";

/** Says what is spent; null while some of the budget is left. */
export function overBudget(limits: Agent["budget"], spent: Spent): string | null {
  const { cost_usd, tokens, turns } = limits ?? {};
  if (cost_usd !== undefined && spent.cost_usd >= cost_usd)
    return `The run has spent ${Math.round(spent.cost_usd * 1e6) / 1e6} USD of its budget of ${cost_usd} USD.`;
  if (tokens !== undefined && spent.tokens >= tokens)
    return `The run has used ${spent.tokens} tokens of its budget of ${tokens}.`;
  if (turns !== undefined && spent.turns >= turns)
    return `The run has taken ${spent.turns} turns of its budget of ${turns}.`;
  return null;
}
