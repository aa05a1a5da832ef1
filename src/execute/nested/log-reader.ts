import { readSync } from "node:fs";
import type { RunEvent } from "../../model/event.ts";
import type { ExecutionEnd, ExecutionStart } from "../../model/execution.ts";
import { createInterruptedEnd } from "../../model/interrupted-end.ts";
import { maxLineBytes, toNestedExecutionId, type NestedLine, parseNestedLine } from "./nested-line.ts";

/** Turns the reports of nested commands into events of their run. */
export interface LogReader {
  /** Records complete lines added since the last call, one chunk at a time. Returns whether there may be more. */
  read(): boolean;
  /** Ends the open executions. Returns the ids of all nested executions. */
  end(reason: string): ReadonlySet<string>;
}

export interface LogReaderOptions {
  fd: number;
  run_id: string;
  attempt: number;
  owner: ExecutionStart["owner"];
  now: () => Date;
  record: (event: RunEvent) => void;
  /** The start of the attempt, in milliseconds. No command in it is older. */
  startedAtMs: number;
  /** The executions that are already recorded, if the run's runner died. */
  recorded?: ReadonlyMap<string, "open" | "ended">;
}

/** The limits for one attempt. The rest is ignored, with one error event. */
const maxExecutions = 2000;
const maxRejectedLines = 1000;
const maxBytes = 8 * 1024 * 1024;
/** How much one call of read() reads. */
const chunkBytes = 128 * 1024;

export function createLogReader(options: LogReaderOptions): LogReader {
  const { fd, run_id, attempt, record } = options;
  const executions = new Map<string, "open" | "ended">(options.recorded);
  let offset = 0;
  let incompleteLine = Buffer.alloc(0);
  let isSkipping = false;
  let rejectedLines = 0;
  let isFull = false;

  function recordLine(line: NestedLine): boolean {
    const execution_id = toNestedExecutionId(`${run_id}.${attempt}`, line.id);
    const state = executions.get(execution_id);
    if ("start" in line) {
      // This start was recorded before the runner died.
      if (options.recorded?.has(execution_id)) return true;
      if (state !== undefined) return false;
      if (executions.size >= maxExecutions) return markFull();
      executions.set(execution_id, "open");
      const { owner } = options;
      const execution = { execution_id, ...line.start, owner, reported_by: "command" as const };
      record({ type: "execution_started", execution });
      return true;
    }
    if (state !== "open") return options.recorded?.get(execution_id) === "ended";
    endExecution(execution_id, { execution_id, ...line.end, interrupted: false });
    return true;
  }

  function markFull(): true {
    if (!isFull) {
      const message = `Commands of this run wrote too much to DROVER_NESTED_LOG (at most ${maxExecutions} executions, ${maxRejectedLines} invalid lines, ${maxBytes / 1048576} MB); the rest was not recorded.`;
      record({ type: "error", code: "nested_log_full", message });
    }
    return (isFull = true);
  }

  function endExecution(execution_id: string, execution: ExecutionEnd): void {
    executions.set(execution_id, "ended");
    record({ type: "execution_ended", execution: { ...execution, reported_by: "command" } });
  }

  function readLines(chunk: Buffer): void {
    let start = 0;
    for (let end = chunk.indexOf(10); end >= 0 && !isFull; end = chunk.indexOf(10, start)) {
      const bytes = Buffer.concat([incompleteLine, chunk.subarray(start, end)]);
      start = end + 1;
      const line = isSkipping
        ? null
        : parseNestedLine(bytes.toString("utf8"), options.startedAtMs, options.now().getTime());
      if (line === null || !recordLine(line)) rejectedLines += 1;
      if (rejectedLines >= maxRejectedLines) markFull();
      [incompleteLine, isSkipping] = [Buffer.alloc(0), false];
    }
    incompleteLine = Buffer.concat([incompleteLine, chunk.subarray(start)]);
    // Skip the rest of a line that is too long.
    if (incompleteLine.length > maxLineBytes) [incompleteLine, isSkipping] = [Buffer.alloc(0), true];
  }

  return {
    read() {
      if (isFull) return false;
      const buffer = Buffer.alloc(chunkBytes);
      const bytes = readSync(fd, buffer, 0, chunkBytes, offset);
      offset += bytes;
      readLines(buffer.subarray(0, bytes));
      if (offset >= maxBytes) markFull();
      return bytes > 0 && !isFull;
    },
    end(reason) {
      if (incompleteLine.length > 0 || isSkipping) rejectedLines += 1;
      for (const [execution_id, state] of executions)
        if (state === "open")
          endExecution(execution_id, createInterruptedEnd(execution_id, options.now().toISOString(), reason));
      if (rejectedLines === 0) return new Set(executions.keys());
      const message = `${rejectedLines === 1 ? "One line" : `${rejectedLines} lines`} in DROVER_NESTED_LOG ${rejectedLines === 1 ? "was" : "were"} not a valid report of an execution and ${rejectedLines === 1 ? "was" : "were"} ignored.`;
      record({ type: "error", code: "nested_log_invalid", message });
      return new Set(executions.keys());
    },
  };
}
