import type { RunEvent } from "../../model/event.ts";
import type { ExecutionEnd, ExecutionStart } from "../../model/execution.ts";
import { outputBytes } from "../../model/output.ts";
import type { OutputStream, Redactor } from "../../model/process.ts";
import { createOutputEvents } from "./output-events.ts";

/**
 * Turns what happens in a run into redacted events, in order, and hands each to a sink: the journal of a run
 * that was claimed, or the store itself where `exec` records its own run. The sink numbers and keeps them.
 */
export interface Recorder {
  /** Records an event of Drover's own. */
  record(event: RunEvent): void;
  /** Records an event an executor sent, or that it sent one it may not send. */
  recordFromExecutor(event: RunEvent): void;
  output(stream: OutputStream, chunk: Uint8Array): void;
  /** Returns the start as it was recorded. */
  started(execution: ExecutionStart): ExecutionStart;
  /** Records the end of an execution, after all of its output. */
  ended(execution: ExecutionEnd): void;
  /** Records output that was still waiting for more. */
  endOutput(): void;
}

export interface RecorderOptions {
  sink: (event: RunEvent) => void;
  redactor: Redactor;
  outputDelayMs: number;
  /** Kept of each output stream; everything where it is not given. */
  maxOutputBytes?: number;
}

export function createRecorder({ sink, redactor, outputDelayMs, maxOutputBytes }: RecorderOptions): Recorder {
  const output = createOutputEvents({
    redactor,
    write: sink,
    delayMs: outputDelayMs,
    ...(maxOutputBytes === undefined ? {} : { maxBytes: maxOutputBytes }),
  });
  let openExecutions = 0;
  const record = (event: RunEvent): void => {
    output.flush();
    sink(redactor.value(event));
  };
  return {
    record,
    recordFromExecutor(event) {
      if (event.type === "output") {
        if (event.skipped !== undefined) output.skip(event.stream, event.skipped);
        output.push(event.stream, outputBytes(event));
      } else if (reservedEventTypes.has(event.type))
        record({
          type: "error",
          code: "bad_event",
          message: `An executor may not send "${event.type}" events; it was dropped.`,
        });
      else record(event);
    },
    output: output.push,
    started(given) {
      const execution = redactor.value(given);
      openExecutions++;
      output.flush();
      sink({ type: "execution_started", execution });
      return execution;
    },
    ended(execution) {
      openExecutions--;
      // while another execution writes, a secret may lie across what it wrote and what it writes next
      if (openExecutions === 0) output.end();
      record({ type: "execution_ended", execution });
    },
    endOutput: output.end,
  };
}

/** Events of the runner and the coordinator: an executor that could write them could forge the record. */
export const reservedEventTypes: ReadonlySet<RunEvent["type"]> = new Set([
  "status",
  "result",
  "file",
  "execution_started",
  "execution_ended",
  "permission_request",
  "permission_decision",
]);
