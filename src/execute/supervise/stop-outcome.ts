import type { RunEvent } from "../../model/event.ts";
import type { Outcome } from "../../model/executor.ts";
import { stopReasons, type StopReason } from "../../model/states.ts";

/** The outcome of a run that was stopped from outside. */
export function toStopOutcome(reason: StopReason, text?: string): Outcome {
  const failed = (failureReason: Extract<Outcome, { status: "failed" }>["reason"], message: string): Outcome => ({
    status: "failed",
    reason: failureReason,
    message,
    exit_code: null,
    ...(text === undefined ? {} : { text }),
  });
  switch (reason) {
    case "user":
      return { status: "cancelled", by: "user" };
    case "shutdown":
      return { status: "cancelled", by: "shutdown" };
    case "timeout":
      return failed(
        "timeout",
        "The run reached its time limit, and everything it had started was stopped. Raise timeout_seconds, or check whether it hangs.",
      );
    case "idle":
      return failed(
        "idle",
        "The run produced no events for longer than its idle timeout, so it was stopped. Raise idle_timeout_seconds, or check whether it hangs.",
      );
    case "budget":
      return failed(
        "budget_exceeded",
        "The run used up its budget and was stopped. Raise the agent's budget, or ask for less in one run.",
      );
    case "approval_expired":
      return failed("approval_expired", "Nobody answered the run's question in time.");
    case "output_limit":
      return failed(
        "limit_exceeded",
        "The run's log reached its maximum size, and the run was stopped. Make the run print less.",
      );
    case "disk_limit":
      return failed(
        "limit_exceeded",
        "The run exceeded its disk limit and was stopped. Raise limits.disk_bytes or limits.files, or make the run write less.",
      );
    case "lease_lost":
      return failed(
        "runner_lost",
        "The runner could not reach the coordinator for longer than its lease, and stopped the run so that it cannot run twice.",
      );
    default: {
      const unknown: never = reason;
      return failed("internal", `Stopped for an unknown reason: ${String(unknown)}.`);
    }
  }
}

/** The outcome of a stopped run whose executor did not return, and the event that records this. */
export function unresponsiveOutcome(
  executor: string,
  reason: StopReason,
  action: "Drover killed it" | "Drover gave up on it",
): { outcome: Outcome; event: RunEvent } {
  const message = `The executor ${executor} did not react to the stop, so ${action}.`;
  const outcome = toStopOutcome(reason);
  return {
    outcome: outcome.status === "failed" ? { ...outcome, message: `${outcome.message} ${message}` } : outcome,
    event: { type: "error", code: "executor_unresponsive", message },
  };
}

/** Any other abort reason comes from the caller's own AbortController and counts as "user". */
export function getStopReason(signal: AbortSignal): StopReason {
  return stopReasons.find((reason) => reason === signal.reason) ?? "user";
}
