import { resolve } from "node:path";
import type { Config } from "../model/config.ts";
import { RequestError } from "../model/errors.ts";
import type { CaptureOptions, Command, Limits, StartOptions } from "../model/process.ts";
import { checkCommand } from "../process/check-command.ts";
import { parseCommandLine } from "../process/command-line.ts";
import { findExecutable } from "../process/find-executable.ts";

/** Options for a command. The fields of a `Command` object take precedence. */
export interface CommandOptions {
  /** The directory that the command runs in. Defaults to the working directory. */
  cwd?: string;
  /** Variables to set for the command. */
  env?: Readonly<Record<string, string>>;
  /** Stops the command after this time. `execute` defaults to 300,000 or the default timeout of drover.yaml. */
  timeoutMs?: number;
  limits?: Limits;
  /** Stops the command and everything it started. */
  signal?: AbortSignal;
}

export interface ExecuteOptions extends CommandOptions, Omit<StartOptions, "output"> {
  /** Whether to record the command. Defaults to true. */
  record?: boolean;
  /** The state directory that contains the record. Defaults to the one that `drover exec` would use. */
  stateDir?: string;
  capture?: Partial<CaptureOptions>;
}

/** Combines the command with the options of the caller. */
export function toCommand(
  command: string | Command,
  options: CommandOptions & StartOptions,
  useShell: "auto" | boolean,
): Command & { workingDirectory: string } {
  const { cwd, env, limits, timeoutMs } = options;
  const parsed = typeof command === "string" ? parse(command, options, useShell) : command;
  // This also rejects a command that is not an object.
  checkCommand(parsed);
  return {
    ...(env === undefined ? {} : { environment: env }),
    ...(limits === undefined ? {} : { limits }),
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...parsed,
    workingDirectory: resolve(parsed.workingDirectory ?? cwd ?? "."),
  };
}

/** Adds the default timeout of drover.yaml if the caller passes none. */
export function applyTimeout(options: ExecuteOptions, { execution }: Config): ExecuteOptions {
  return { ...options, timeoutMs: options.timeoutMs ?? execution.default_timeout_seconds * 1000 };
}

export function applyCaptureDefaults({ capture }: ExecuteOptions, { execution }: Config): CaptureOptions {
  return { mode: "both", maxBytes: execution.max_output_kb * 1024, onLimit: execution.output_limit, ...capture };
}

/** Returns only the options of the process layer. */
export function toStartOptions(options: ExecuteOptions): StartOptions {
  const {
    cwd: _1,
    env: _2,
    limits: _3,
    signal: _4,
    record: _5,
    stateDir: _6,
    timeoutMs: _7,
    capture: _8,
    ...rest
  } = options;
  return rest;
}

function parse(line: string, { parentEnvironment = process.env }: StartOptions, useShell: "auto" | boolean): Command {
  const isOnPath = (name: string): boolean => "found" in findExecutable(name, parentEnvironment["PATH"], process.cwd());
  const { shell: _, ...parsed } = parseCommandLine(line, useShell, { isOnPath });
  return parsed;
}

/** Validates at run time, for callers in plain JavaScript. */
export function checkOptions(options: ExecuteOptions): void {
  if (typeof options !== "object" || options === null) throw invalidOption("options", "must be an object");
  const { signal, cwd, stateDir } = options;
  if (signal !== undefined && !(signal instanceof AbortSignal)) throw invalidOption("signal", "must be an AbortSignal");
  if (cwd !== undefined && typeof cwd !== "string") throw invalidOption("cwd", "must be a path");
  if (stateDir !== undefined && (typeof stateDir !== "string" || stateDir === ""))
    throw invalidOption("stateDir", "must be a path");
}

export function checkCapture({
  maxBytes = 0,
  mode = "both",
  onLimit = "truncate",
}: Partial<CaptureOptions> = {}): void {
  if (!Number.isInteger(maxBytes) || maxBytes < 0)
    throw invalidOption("capture.maxBytes", "must be a whole number of bytes");
  if (!["both", "merged", "none", "file"].includes(mode))
    throw invalidOption("capture.mode", "must be both, merged, none or file");
  if (!["truncate", "fail"].includes(onLimit)) throw invalidOption("capture.onLimit", "must be truncate or fail");
}

export function invalidOption(field: string, problem: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field,
    message: `${field} ${problem}.`,
    next: 'For example: execute("npm test", { cwd: "app" }) or execute({ executable: "npm", arguments: ["test"] })',
  });
}
