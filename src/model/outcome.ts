import type { ResultEvent } from "./event.ts";
import type { Outcome, ParkedOutcome } from "./executor.ts";
import type { FailureReason } from "./states.ts";

export function createFailedOutcome(reason: FailureReason, message: string): Extract<Outcome, { status: "failed" }> {
  return { status: "failed", reason, message, exit_code: null };
}

/** The outcome of a run that should be parked but cannot be. */
export function toFailedOutcome({ why, message }: ParkedOutcome): Extract<Outcome, { status: "failed" }> {
  switch (why) {
    case "budget":
      return createFailedOutcome("budget_exceeded", message ?? "The budget was used up.");
    case "usage_limit":
      return createFailedOutcome(
        "provider_rate_limit",
        message ?? "The provider's usage limit was reached. Run it again when quota is available.",
      );
    case "approval":
      return createFailedOutcome("approval_expired", message ?? "Nobody answered the run's question in time.");
  }
}

/** The final event of a run with this outcome. */
export function toResultEvent(original: Outcome): ResultEvent {
  const outcome = original.status === "parked" ? toFailedOutcome(original) : original;
  const empty = { type: "result", reason: null, error: null } as const;
  if (outcome.status === "cancelled") {
    const error = outcome.by === "shutdown" ? "The runner was shut down." : null;
    return { ...empty, status: "cancelled", error, exit_code: null, result_text: null, result_data: null };
  }
  const { exit_code, text = null, data = null } = outcome;
  const result = { ...empty, exit_code, result_text: text, result_data: data };
  if (outcome.status === "completed") return { ...result, status: "completed" };
  return { ...result, status: "failed", reason: outcome.reason, error: outcome.message };
}
