import type { RunEvent } from "../../model/event.ts";
import type { Outcome } from "../../model/executor.ts";
import { stopReasons, type StopReason } from "../../model/states.ts";

/** How a run ends that was ended from outside. */
export function outcomeOfStop(reason: StopReason, text?: string): Outcome {
  const failed = (why: Extract<Outcome, { status: "failed" }>["reason"], message: string): Outcome => ({
    status: "failed",
    reason: why,
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
        "Its time was over; everything it had started was ended. Give it more time, or look at why it hangs.",
      );
    case "idle":
      return failed("idle", "It said nothing for too long and was ended.");
    case "budget":
      return failed("budget_exceeded", "Its budget was used up.");
    case "approval_expired":
      return failed("approval_expired", "Nobody answered its question in time.");
    case "output_limit":
      return failed(
        "limit_exceeded",
        "Its log reached the largest size a run may have, and it was ended. Make it print less.",
      );
    case "disk_limit":
      return failed(
        "limit_exceeded",
        "It held more on disk than it may, and was ended. Raise the limit, or make it need less.",
      );
    case "lease_lost":
      return failed(
        "runner_lost",
        "The runner could not reach the coordinator for longer than its lease, and ended the run so that it cannot run twice.",
      );
    default: {
      const unknown: never = reason;
      return failed("internal", `Stopped for an unknown reason: ${String(unknown)}.`);
    }
  }
}

/** How a stopped run ends whose executor did not return, and the event that says so. */
export function unresponsiveOutcome(
  executor: string,
  reason: StopReason,
  what: "was ended" | "was given up",
): { outcome: Outcome; event: RunEvent } {
  const message = `The executor ${executor} did not react to the stop, and ${what}.`;
  const outcome = outcomeOfStop(reason);
  return {
    outcome: outcome.status === "failed" ? { ...outcome, message: `${outcome.message} ${message}` } : outcome,
    event: { type: "error", code: "executor_unresponsive", message },
  };
}

/** Anything but a StopReason was an abort by the caller's own means. */
export function stopReasonOf(signal: AbortSignal): StopReason {
  return stopReasons.find((reason) => reason === signal.reason) ?? "user";
}
