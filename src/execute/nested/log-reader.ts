import { readSync } from "node:fs";
import type { RunEvent } from "../../model/event.ts";
import type { ExecutionEnd, ExecutionStart } from "../../model/execution.ts";
import { interruptedEnd } from "../../model/interrupted-end.ts";
import { maxLineBytes, nestedExecutionId, type NestedLine, parseNestedLine } from "./nested-line.ts";

/** Turns the reports of nested commands into events of their run. */
export interface LogReader {
  /** Records complete lines added since the last call, one chunk at a time. Returns whether there may be more. */
  read(): boolean;
  /** Ends the open executions. Returns the ids of all executions. */
  end(why: string): ReadonlySet<string>;
}

export interface LogReaderOptions {
  fd: number;
  run_id: string;
  attempt: number;
  owner: ExecutionStart["owner"];
  now: () => Date;
  record: (event: RunEvent) => void;
  /** The start of the attempt, in milliseconds. No command in it is older. */
  since: number;
  /** For a run whose Drover died: the executions that are already recorded. */
  known?: ReadonlyMap<string, "open" | "ended">;
}

/** Limits for one attempt. The rest is ignored, with one error event. */
const maxExecutions = 2000;
const maxRefused = 1000;
const maxBytes = 8 * 1024 * 1024;
/** Read by one call of read(). */
const chunkBytes = 128 * 1024;

export function createLogReader(options: LogReaderOptions): LogReader {
  const { fd, run_id, attempt, record } = options;
  const executions = new Map<string, "open" | "ended">(options.known);
  let offset = 0;
  let rest = Buffer.alloc(0);
  let isSkipping = false;
  let refused = 0;
  let isFull = false;

  function take(line: NestedLine): boolean {
    const execution_id = nestedExecutionId(`${run_id}.${attempt}`, line.id);
    const state = executions.get(execution_id);
    if ("start" in line) {
      // already recorded before the runner died
      if (options.known?.has(execution_id)) return true;
      if (state !== undefined) return false;
      if (executions.size >= maxExecutions) return fill();
      executions.set(execution_id, "open");
      const { owner } = options;
      const execution = { execution_id, ...line.start, owner, reported_by: "command" as const };
      record({ type: "execution_started", execution });
      return true;
    }
    if (state !== "open") return options.known?.get(execution_id) === "ended";
    endOne(execution_id, { execution_id, ...line.end, interrupted: false });
    return true;
  }

  function fill(): true {
    if (!isFull) {
      const message = `Commands of this run wrote too much to DROVER_NESTED_LOG (at most ${maxExecutions} executions, ${maxRefused} other lines, ${maxBytes / 1048576} MB); the rest was not recorded.`;
      record({ type: "error", code: "nested_log_full", message });
    }
    return (isFull = true);
  }

  function endOne(execution_id: string, execution: ExecutionEnd): void {
    executions.set(execution_id, "ended");
    record({ type: "execution_ended", execution: { ...execution, reported_by: "command" } });
  }

  function takeLines(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(10); at >= 0 && !isFull; at = chunk.indexOf(10, from)) {
      const bytes = Buffer.concat([rest, chunk.subarray(from, at)]);
      from = at + 1;
      const line = isSkipping ? null : parseNestedLine(bytes.toString("utf8"), options.since, options.now().getTime());
      if (line === null || !take(line)) refused += 1;
      if (refused >= maxRefused) fill();
      [rest, isSkipping] = [Buffer.alloc(0), false];
    }
    rest = Buffer.concat([rest, chunk.subarray(from)]);
    // skip the rest of a line that is too long
    if (rest.length > maxLineBytes) [rest, isSkipping] = [Buffer.alloc(0), true];
  }

  return {
    read() {
      if (isFull) return false;
      const buffer = Buffer.alloc(chunkBytes);
      const bytes = readSync(fd, buffer, 0, chunkBytes, offset);
      offset += bytes;
      takeLines(buffer.subarray(0, bytes));
      if (offset >= maxBytes) fill();
      return bytes > 0 && !isFull;
    },
    end(why) {
      if (rest.length > 0 || isSkipping) refused += 1;
      for (const [execution_id, state] of executions)
        if (state === "open") endOne(execution_id, interruptedEnd(execution_id, options.now().toISOString(), why));
      if (refused === 0) return new Set(executions.keys());
      const message = `${refused === 1 ? "One line" : `${refused} lines`} in DROVER_NESTED_LOG ${refused === 1 ? "was" : "were"} not a valid report of an execution and ${refused === 1 ? "was" : "were"} ignored.`;
      record({ type: "error", code: "nested_log_invalid", message });
      return new Set(executions.keys());
    },
  };
}
