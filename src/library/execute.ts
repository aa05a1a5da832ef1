import { RequestError } from "../model/errors.ts";
import type { CaptureOptions, Command, CommandResult, RunningProcess, StartOptions } from "../model/process.ts";
import { parseCommandLine } from "../process/command-line.ts";
import { execute as executeCommand } from "../process/execute.ts";
import { findExecutable } from "../process/find-executable.ts";
import { start as startCommand } from "../process/start.ts";

export type ExecuteOptions = Omit<StartOptions, "output"> & { capture?: Partial<CaptureOptions> };

const captureDefaults: CaptureOptions = { mode: "both", maxBytes: 1024 * 1024, onLimit: "truncate" };

/**
 * Runs a command until it exits and returns its output. A string is a command line as for `drover exec`: plain words
 * run without a shell, anything else runs through /bin/sh. Rejects with a RequestError if the arguments are invalid.
 */
export async function execute(
  command: string | Command,
  options: ExecuteOptions = {},
  signal?: AbortSignal,
): Promise<CommandResult> {
  checkOptions(options, signal);
  const capture = { ...captureDefaults, ...options.capture };
  const { maxBytes, mode, onLimit } = capture;
  if (!Number.isInteger(maxBytes) || maxBytes < 0)
    throw invalidOption("capture.maxBytes", "must be a whole number of bytes");
  if (!["both", "merged", "none", "file"].includes(mode))
    throw invalidOption("capture.mode", "must be both, merged, none or file");
  if (!["truncate", "fail"].includes(onLimit)) throw invalidOption("capture.onLimit", "must be truncate or fail");
  return executeCommand(toCommand(command, options), { ...options, capture }, signal);
}

/** Starts a command for callers that read its streams themselves. A string is a command line, as for `execute`. */
export function start(
  command: string | Command,
  options: StartOptions = {},
  signal: AbortSignal = new AbortController().signal,
): RunningProcess {
  checkOptions(options, signal);
  return startCommand(toCommand(command, options), options, signal);
}

function toCommand(command: string | Command, { parentEnvironment = process.env }: StartOptions): Command {
  if (typeof command !== "string") return command;
  const isOnPath = (name: string): boolean => "found" in findExecutable(name, parentEnvironment["PATH"], process.cwd());
  const { shell: _, ...parsed } = parseCommandLine(command, "auto", { isOnPath });
  return parsed;
}

/** Validates at run time, for callers in plain JavaScript. */
function checkOptions(options: unknown, signal: unknown): void {
  if (typeof options !== "object" || options === null) throw invalidOption("options", "must be an object");
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalidOption("signal", "must be an AbortSignal");
}

function invalidOption(field: string, problem: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field,
    message: `${field} ${problem}.`,
    next: 'Call it like execute("npm test") or execute({ executable: "npm", arguments: ["test"] }).',
  });
}
