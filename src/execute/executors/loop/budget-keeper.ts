import type { Agent } from "../../../model/agent.ts";
import type { Usage } from "../../../model/event.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { Progress } from "./loop-state.ts";
import { RunParked } from "./run-parked.ts";

/** Enforces a run's budget before each request to the model. */
export interface BudgetKeeper {
  /** Parks or fails the run if a limit is reached. */
  check(): Promise<void>;
  addUsage(usage: Usage): void;
}

export interface BudgetOptions {
  budget: Agent["budget"];
  progress: Progress;
  /** Aborts when the agent's daily budget is spent, which the coordinator tracks. */
  overBudget: AbortSignal;
  now: () => Date;
  /** Grants the run its whole budget again, for when it is resumed. */
  renew: () => Promise<void>;
}

export function createBudgetKeeper({ budget = {}, progress, overBudget, now, renew }: BudgetOptions): BudgetKeeper {
  const hasCostBudget = budget.cost_usd !== undefined || budget.per_day?.cost_usd !== undefined;

  /** Describes the limit that the run has reached; null if it has reached none. */
  function describeOverspend(): string | null {
    const { cost_usd, tokens, turns } = budget;
    const { before: atRenewal } = progress;
    const usd = progress.spent_usd - atRenewal.spent_usd;
    if (cost_usd !== undefined && usd >= cost_usd)
      return `The run has spent ${Math.round(usd * 1e6) / 1e6} USD since its budget was granted. Its budget is ${cost_usd} USD.`;
    const usedTokens = progress.spent_tokens - atRenewal.spent_tokens;
    if (tokens !== undefined && usedTokens >= tokens)
      return `The run has used ${usedTokens} tokens. Its budget is ${tokens}.`;
    const usedTurns = progress.turns - atRenewal.turns;
    if (turns !== undefined && usedTurns >= turns)
      return `The run has used ${usedTurns} turns. Its budget is ${turns}.`;
    return null;
  }

  return {
    async check() {
      const failsWhenSpent = budget.when_spent === "fail";
      if (overBudget.aborted) {
        const message = "The agent has spent its budget for today (`budget.per_day`).";
        if (failsWhenSpent) throw new RunFailure("budget_exceeded", message);
        throw new RunParked({ why: "budget", until: nextDay(now()).toISOString(), message });
      }
      const message = describeOverspend();
      if (message === null) return;
      if (failsWhenSpent) throw new RunFailure("budget_exceeded", message);
      await renew();
      throw new RunParked({ why: "budget", message: `${message} Resume the run to grant the same budget again.` });
    },
    addUsage({ input_tokens, output_tokens, cost_usd }) {
      progress.spent_usd += cost_usd ?? 0;
      progress.spent_tokens += input_tokens + output_tokens;
      if (hasCostBudget && cost_usd === null)
        throw new RunFailure(
          "refused",
          "The agent's budget cannot be enforced: the provider does not report the cost of its answers. Set `price` in the profile's config, or remove `budget`.",
        );
    },
  };
}

/** Returns the start of the next UTC day. */
export function nextDay(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1));
}
