import type { RunEvent } from "../model/event.ts";
import type { Redactor } from "../model/process.ts";
import type { Journal } from "./journal.ts";
import { createOutputEvents } from "./output-events.ts";

/** The log of one run as its parts write it: redacted, in order, with output joined to fewer pieces. */
export interface RunRecord {
  /** The runner's own words. */
  record(event: RunEvent): void;
  /** An executor's: what it must not say is told instead. */
  ofExecutor(event: RunEvent): void;
  /** No more output comes. */
  endOutput(): void;
}

export interface RunRecordOptions {
  journal: Journal;
  redactor: Redactor;
  outputDelayMs: number;
  poke: () => void;
  /** It is full: what comes after that is not taken. */
  onFull: () => void;
  /** It cannot be written. */
  onFault: () => void;
}

export function createRunRecord({ journal, redactor, ...options }: RunRecordOptions): RunRecord {
  const append = (event: RunEvent): void => {
    try {
      if (!journal.append(event)) options.onFull();
    } catch (error) {
      if (journal.fault === null) throw error;
      options.onFault();
    }
    options.poke();
  };
  const output = createOutputEvents({ redactor, write: append, delayMs: options.outputDelayMs });
  const record = (event: RunEvent): void => {
    output.flush();
    append(redactor.value(event));
  };
  return {
    record,
    ofExecutor(event) {
      if (event.type === "output") output.push(event);
      else if (notTheExecutors.has(event.type))
        record({
          type: "error",
          code: "bad_event",
          message: `An executor may not send "${event.type}" events; it was dropped.`,
        });
      else record(event);
    },
    endOutput: output.end,
  };
}

/** Those are the runner's and the coordinator's: an executor that could write them could forge the record. */
export const notTheExecutors: ReadonlySet<RunEvent["type"]> = new Set([
  "status",
  "result",
  "file",
  "execution_started",
  "execution_ended",
  "permission_request",
  "permission_decision",
]);
