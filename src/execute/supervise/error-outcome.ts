import type { Outcome } from "../../model/executor.ts";
import { createFailedOutcome } from "../../model/outcome.ts";
import type { Redactor } from "../../model/process.ts";
import { isOutOfDescriptors } from "../claim/descriptors.ts";
import { toFailureOutcome, RunFailure } from "../scaffold/run-failure.ts";
import { toStopOutcome, getStopReason } from "./stop-outcome.ts";

export interface ErrorOutcomes {
  /** For an error that the executor threw. An executor rejects only because of a bug, or because its run is being stopped. */
  fromExecutor(error: unknown): Outcome;
  /** For an error in the runner's own code around the executor. */
  fromRunner(error: unknown): Outcome;
  /** For an error that neither the executor's nor the runner's handling caught. */
  fromUncaught(error: unknown): Outcome;
}

/** The outcome gets one readable sentence. The stack trace goes to the runner's log, since the error may not recur. */
export function createErrorOutcomes(options: {
  /** `RUN.ATTEMPT`. */
  attemptName: string;
  executor: string;
  signal: AbortSignal;
  redactor: Redactor;
  onNotice: (message: string) => void;
}): ErrorOutcomes {
  const { attemptName, executor, signal, onNotice } = options;
  const formatTrace = (error: unknown): string =>
    options.redactor.value(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return {
    fromExecutor(error) {
      if (signal.aborted) return toStopOutcome(getStopReason(signal));
      if (isOutOfDescriptors(error)) return outOfDescriptors(error);
      onNotice(`the executor ${executor} failed in run ${attemptName}: ${formatTrace(error)}`);
      return internalFailure(`The executor ${executor} failed unexpectedly. See the runner's log for the stack trace.`);
    },
    fromRunner(error) {
      if (signal.aborted && error === signal.reason) return toStopOutcome(getStopReason(signal));
      if (error instanceof RunFailure) return toFailureOutcome(error);
      if (isOutOfDescriptors(error)) return outOfDescriptors(error);
      onNotice(`the runner failed in run ${attemptName}: ${formatTrace(error)}`);
      return internalFailure("The runner failed unexpectedly. See its log for the stack trace.");
    },
    fromUncaught(error) {
      onNotice(`run ${attemptName} ended with an unexpected error: ${formatTrace(error)}`);
      return internalFailure("The runner failed unexpectedly. See its log for the stack trace.");
    },
  };
}

export function internalFailure(message: string): Outcome {
  return createFailedOutcome("internal", message);
}

function outOfDescriptors(error: Error): Outcome {
  return internalFailure(
    `The runner ran out of file descriptors (${error.message}). Raise its \`ulimit -n\`, or reduce its slots.`,
  );
}
