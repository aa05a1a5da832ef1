import { defaultConfig } from "../model/config.ts";
import { formatSkippedNote } from "../model/output.ts";
import type { CapturedOutput, Command, CommandResult, RunningProcess, StartOptions } from "../model/process.ts";
import { execute as executeCommand } from "../process/execute.ts";
import { start as startCommand } from "../process/start.ts";
import {
  checkCapture,
  checkOptions,
  type CommandOptions,
  type ExecuteOptions,
  invalidOption,
  toCommand,
  toStartOptions,
  applyCaptureDefaults,
  applyTimeout,
} from "./execute-options.ts";

export interface ExecuteResult extends Omit<CommandResult, "stdout" | "stderr"> {
  /** The id on the record: of a run or, inside a run of Drover, of an execution. null if nothing is recorded. */
  runId: string | null;
  stdout: string;
  stderr: string;
  /** The bytes behind `stdout` and `stderr`. */
  captured: { stdout: CapturedOutput; stderr: CapturedOutput };
}

/**
 * Runs a command until it exits, records it, and returns its output. A string is a command line as for `drover exec`:
 * plain words run without a shell, anything else runs through /bin/sh. A failing command resolves to a result with an
 * `error`. Rejects with a RequestError if the arguments are invalid, and with a HostError if the record cannot be written.
 * In both cases the command has not started.
 */
export async function execute(command: string | Command, options: ExecuteOptions = {}): Promise<ExecuteResult> {
  checkOptions(options);
  checkCapture(options.capture);
  const { record = true } = options;
  if (typeof record !== "boolean") throw invalidOption("record", "must be true or false");
  if (record) {
    // Import this only now, so that importing the package stays fast.
    const { executeOnRecord } = await import("./execute-on-record.ts");
    const { result, runId } = await executeOnRecord(command, options);
    return toExecuteResult(result, runId);
  }
  const capture = applyCaptureDefaults(options, defaultConfig);
  const result = await executeCommand(
    toCommand(command, applyTimeout(options, defaultConfig), defaultConfig.execution.use_shell),
    { environment: defaultConfig.execution.environment, ...toStartOptions(options), capture },
    options.signal,
  );
  return toExecuteResult(result, null);
}

/**
 * Starts a command for callers that read its streams themselves. A string is a command line, as for `execute`. Nothing is
 * recorded and there is no default timeout.
 */
export function start(command: string | Command, options: StartOptions & CommandOptions = {}): RunningProcess {
  checkOptions(options);
  const { signal = new AbortController().signal } = options;
  return startCommand(toCommand(command, options, "auto"), toStartOptions(options), signal);
}

function toExecuteResult({ stdout, stderr, ...result }: CommandResult, runId: string | null): ExecuteResult {
  return { ...result, runId, stdout: decode(stdout), stderr: decode(stderr), captured: { stdout, stderr } };
}

/** Decodes a stream. A note stands in place of the bytes that were not kept. */
function decode({ head, tail, totalBytes, truncated }: CapturedOutput): string {
  const skippedNote = truncated ? formatSkippedNote(totalBytes - head.length - tail.length) : "";
  return `${Buffer.from(head).toString("utf8")}${skippedNote}${Buffer.from(tail).toString("utf8")}`;
}
