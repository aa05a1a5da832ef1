import type { Agent } from "../../../model/agent.ts";
import type { Usage } from "../../../model/event.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { Progress } from "./loop-state.ts";
import { RunParked } from "./run-parked.ts";

/** Enforces a run's budget before each request to the model. */
export interface BudgetKeeper {
  /** Parks or fails the run if a limit is reached. */
  check(): Promise<void>;
  count(usage: Usage): void;
}

export interface BudgetOptions {
  budget: Agent["budget"];
  progress: Progress;
  /** Aborts when the agent's daily budget is spent, which the coordinator tracks. */
  overBudget: AbortSignal;
  now: () => Date;
  /** Saves that the run may spend its budget once more when it is resumed. */
  renew: () => Promise<void>;
}

export function createBudgetKeeper({ budget = {}, progress, overBudget, now, renew }: BudgetOptions): BudgetKeeper {
  const isPriced = budget.cost_usd !== undefined || budget.per_day?.cost_usd !== undefined;

  /** Says what is spent; null while some of the budget is left. */
  function spent(): string | null {
    const { cost_usd, tokens, turns } = budget;
    const { before } = progress;
    const dollars = progress.spent_usd - before.spent_usd;
    if (cost_usd !== undefined && dollars >= cost_usd) return `${dollars} USD of its budget of ${cost_usd} USD`;
    const used = progress.spent_tokens - before.spent_tokens;
    if (tokens !== undefined && used >= tokens) return `${used} tokens of its budget of ${tokens}`;
    const taken = progress.turns - before.turns;
    if (turns !== undefined && taken >= turns) return `${taken} turns of its budget of ${turns}`;
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
      const what = spent();
      if (what === null) return;
      const message = `The run has spent ${what}.`;
      if (failsWhenSpent) throw new RunFailure("budget_exceeded", message);
      await renew();
      throw new RunParked({ why: "budget", message: `${message} Resume the run to grant the same budget again.` });
    },
    count({ input_tokens, output_tokens, cost_usd }) {
      progress.spent_usd += cost_usd ?? 0;
      progress.spent_tokens += input_tokens + output_tokens;
      if (isPriced && cost_usd === null)
        throw new RunFailure(
          "refused",
          "The agent's budget cannot be enforced: the provider does not report what its answers cost. Set `price` in the profile's config, or remove `budget`.",
        );
    },
  };
}

/** Days are UTC days. */
export function nextDay(now: Date): Date {
  return new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth(), now.getUTCDate() + 1));
}
