import type { Agent } from "../../../model/agent.ts";
import type { Done } from "../../scaffold/define-executor.ts";
import { RunFailure } from "../../scaffold/run-failure.ts";
import type { Reader } from "../clients/definition.ts";
import type { EventWriter } from "../clients/event-writer.ts";
import { type Fields, toText } from "../clients/fields.ts";
import { decideOutcome } from "../clients/decide-outcome.ts";
import type { Gate } from "./gate.ts";
import type { QueryEnd } from "./query.ts";
import type { Spending } from "./spending.ts";

export interface RunEnd {
  agent: Agent;
  end: QueryEnd;
  /** The last result. */
  result: Fields;
  gate: Gate | null;
  /** Set if the budget is spent. */
  exceeded: Spending["exceeded"];
  /** When the usage limit that stopped the run resets; null if none stopped it. */
  limitResetsAt: string | null;
  reader: Reader;
  writer: EventWriter;
}

/**
 * Decides the outcome of a run: first by people's answers, then by budgets and limits, then by Claude Code's result.
 */
export function decideRunOutcome({ agent, end, result, gate, exceeded, limitResetsAt, reader, writer }: RunEnd): Done {
  const text = toText(result["result"]) || undefined;
  const toFailure = (reason: RunFailure["reason"], message: string): RunFailure =>
    new RunFailure(reason, message, { exitCode: end.exitCode, ...(text === undefined ? {} : { text }) });
  if (gate?.stopped != null) throw toFailure("permission_denied", gate.stopped);
  if (gate?.parked != null) return { outcome: { status: "parked", why: "approval" } };
  const spentBudget =
    result["subtype"] === "error_max_budget_usd" ? { message: "The run has spent its budget." } : exceeded;
  if (spentBudget !== null) {
    if (agent.budget?.when_spent === "fail") throw toFailure("budget_exceeded", spentBudget.message);
    const message =
      spentBudget.until === undefined
        ? `${spentBudget.message} Resume the run to grant the same budget again.`
        : spentBudget.message;
    return { outcome: { status: "parked", why: "budget", ...spentBudget, message } };
  }
  if (limitResetsAt !== null) {
    const message = `${text ?? "The account's usage limit is reached."} The limit resets at ${limitResetsAt}.`;
    if (agent.on_usage_limit === "fail") throw toFailure("provider_rate_limit", message);
    return { outcome: { status: "parked", why: "usage_limit", until: limitResetsAt, message } };
  }
  if (end.startError !== null) throw toFailure("dependency_missing", end.startError);
  return decideOutcome({ name: "claude-sdk" }, end, { conclude: reader.conclude, getDenial: writer.getDenial }, null);
}
