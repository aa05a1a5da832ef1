import type { Outcome } from "../../model/executor.ts";
import { failed } from "../../model/outcome.ts";
import type { Redactor } from "../../model/process.ts";
import { isOutOfDescriptors } from "../claim/descriptors.ts";
import { outcomeOfFailure, RunFailure } from "../scaffold/run-failure.ts";
import { outcomeOfStop, stopReasonOf } from "./stop-outcome.ts";

export interface ErrorOutcomes {
  /** Of what an executor threw: it rejects on bugs only, but a stop can make a bug of anything that was under way. */
  ofExecutor(error: unknown): Outcome;
  /** Of what was thrown around it. */
  fromRunner(error: unknown): Outcome;
  /** Of what should not have happened at all. */
  fromBug(error: unknown): Outcome;
}

/**
 * People read a sentence; where it happened is for the runner's own log, always: nobody can make it happen again to see.
 */
export function createErrorOutcomes(of: {
  run: string;
  executor: string;
  signal: AbortSignal;
  redactor: Redactor;
  onNotice: (message: string) => void;
}): ErrorOutcomes {
  const { run, executor, signal, onNotice } = of;
  const traceOf = (error: unknown): string =>
    of.redactor.value(error instanceof Error ? (error.stack ?? error.message) : String(error));
  return {
    ofExecutor(error) {
      if (signal.aborted) return outcomeOfStop(stopReasonOf(signal));
      if (isOutOfDescriptors(error)) return outOfDescriptors(error);
      onNotice(`the executor ${executor} failed at run ${run}: ${traceOf(error)}`);
      return internal(`The executor ${executor} failed unexpectedly; the runner's own log says more.`);
    },
    fromRunner(error) {
      if (signal.aborted && error === signal.reason) return outcomeOfStop(stopReasonOf(signal));
      if (error instanceof RunFailure) return outcomeOfFailure(error);
      if (isOutOfDescriptors(error)) return outOfDescriptors(error);
      onNotice(`run ${run} could not be carried out: ${traceOf(error)}`);
      return internal("The runner failed unexpectedly; its own log says more.");
    },
    fromBug(error) {
      onNotice(`run ${run} ended in a defect: ${traceOf(error)}`);
      return internal("The runner failed unexpectedly; its own log says more.");
    },
  };
}

export function internal(message: string): Outcome {
  return failed("internal", message);
}

function outOfDescriptors(error: Error): Outcome {
  return internal(
    `The runner ran out of file descriptors (${error.message}). Raise its \`ulimit -n\`, or give it fewer slots.`,
  );
}
