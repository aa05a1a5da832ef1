import { closeSync, constants, fdatasyncSync, fstatSync, openSync, writeSync } from "node:fs";
import { basename } from "node:path";
import { HostError } from "../../model/errors.ts";
import type { ExecutionEnd, ExecutionStart } from "../../model/execution.ts";
import { maxLineBytes, toNestedExecutionId } from "./nested-line.ts";

/**
 * Reports the command of a `drover exec` inside a run to the outer Drover, which records it. The nested Drover
 * keeps no record.
 */
export interface NestedSink {
  /** The run that the command is part of. */
  readonly runId: string;
  /** The id of the execution in the outer record. */
  executionId(id: string): string;
  /** The start is on disk when this returns. Throws a HostError if it cannot be written. */
  recordStart(id: string, start: ExecutionStart): void;
  recordEnd(id: string, end: ExecutionEnd): void;
}

/** Refuses to write to anything but a regular file. */
export function openNestedSink(path: string): NestedSink {
  const append = (line: object, sync: boolean): void => {
    const bytes = Buffer.from(`${JSON.stringify(line)}\n`, "utf8");
    try {
      const { O_WRONLY, O_APPEND, O_NOFOLLOW, O_NONBLOCK } = constants;
      const fd = openSync(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK);
      try {
        if (!fstatSync(fd).isFile()) throw new Error("it is not a regular file");
        // Uses a single write, so that concurrent commands do not mix their lines.
        if (writeSync(fd, bytes) !== bytes.length) throw new Error("the disk is full");
        if (sync) fdatasyncSync(fd);
      } finally {
        closeSync(fd);
      }
    } catch (cause) {
      throw cannotRecord(path, cause);
    }
  };
  const attemptName = basename(path);
  return {
    runId: attemptName.replace(/\.\d+$/, ""),
    executionId: (id) => toNestedExecutionId(attemptName, id),
    recordStart(id, { execution_id: _id, owner: _owner, ...start }) {
      append({ id, start: truncateStart(start) }, true);
    },
    recordEnd(id, { execution_id: _id, interrupted: _interrupted, ...end }) {
      append(
        { id, end: { ...end, error: end.error && { ...end.error, message: end.error.message.slice(0, 4000) } } },
        true,
      );
    },
  };
}

type Start = Omit<ExecutionStart, "execution_id" | "owner">;

/** Keeps only the beginning of a command that is too long for one line. */
function truncateStart(start: Start): Start {
  if (Buffer.byteLength(JSON.stringify(start)) <= maxLineBytes / 2) return start;
  const argv: string[] = [];
  let remaining = 4000;
  for (const argument of start.argv) {
    if (remaining <= 0) break;
    argv.push(argument.slice(0, remaining));
    remaining -= argument.length + 1;
  }
  const environment = start.environment && {
    ...start.environment,
    given: start.environment.given.slice(0, 100).map((name) => name.slice(0, 100)),
    withheld: start.environment.withheld.slice(0, 100).map((name) => name.slice(0, 100)),
  };
  const note = ` ... (shortened, ${start.argv.length} arguments)`;
  return { ...start, command: `${start.command.slice(0, 4000)}${note}`, argv, ...(environment ? { environment } : {}) };
}

function cannotRecord(path: string, cause: unknown): HostError {
  const isMissing = cause instanceof Error && Reflect.get(cause, "code") === "ENOENT";
  const reason = isMissing
    ? "the run that this command belongs to has ended"
    : cause instanceof Error
      ? cause.message
      : String(cause);
  return new HostError({
    code: "DROVER-STA-016",
    message: `This command cannot be recorded in ${path}: ${reason}.`,
    next: "Drover runs only commands that it can record. To record this command as a separate run, unset DROVER_NESTED_LOG, DROVER_API_URL and DROVER_API_KEY.",
    cause,
  });
}
