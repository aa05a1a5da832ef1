import type { RunEvent } from "../../model/event.ts";
import type { ExecutionEnd, ExecutionStart } from "../../model/execution.ts";
import { getOutputBytes } from "../../model/output.ts";
import type { OutputStream, Redactor } from "../../model/process.ts";
import { createOutputEvents } from "./output-events.ts";

/**
 * Records a run as redacted events, in order. The sink numbers and keeps them: it is the journal of a
 * claimed run, or the store for a run of `exec`.
 */
export interface Recorder {
  /** Records an event of Drover itself. */
  record(event: RunEvent): void;
  /** Records an event that an executor sent, or an error if its type is reserved. */
  recordFromExecutor(event: RunEvent): void;
  output(stream: OutputStream, chunk: Uint8Array): void;
  /** Returns the start as recorded, redacted. */
  recordStart(execution: ExecutionStart): ExecutionStart;
  /** Records the end of an execution, after all of its output. */
  recordEnd(execution: ExecutionEnd): void;
  /** Records output that is still buffered. */
  endOutput(): void;
}

export interface RecorderOptions {
  sink: (event: RunEvent) => void;
  redactor: Redactor;
  outputDelayMs: number;
  /** Limit for each output stream. Unlimited by default. */
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
        output.push(event.stream, getOutputBytes(event));
      } else if (reservedEventTypes.has(event.type))
        record({
          type: "error",
          code: "bad_event",
          message: `An executor may not send "${event.type}" events; the event was dropped.`,
        });
      else record(event);
    },
    output: output.push,
    recordStart(start) {
      const execution = redactor.value(start);
      openExecutions++;
      output.flush();
      sink({ type: "execution_started", execution });
      return execution;
    },
    recordEnd(execution) {
      openExecutions--;
      // Another running execution may have written half a secret, so its buffer must stay open.
      if (openExecutions === 0) output.end();
      record({ type: "execution_ended", execution });
    },
    endOutput: output.end,
  };
}

/** Only the runner and the coordinator may record these. An executor could forge the record with them. */
export const reservedEventTypes: ReadonlySet<RunEvent["type"]> = new Set([
  "status",
  "result",
  "file",
  "execution_started",
  "execution_ended",
  "permission_request",
  "permission_decision",
]);
