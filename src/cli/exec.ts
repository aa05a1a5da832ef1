import { resolve } from "node:path";
import { findCheckout } from "../define/checkout.ts";
import type { ExecRecord, ExecRequest } from "../execute/exec.ts";
import { openExecRecording } from "../compose/exec-recording.ts";
import { findProject, type Project } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import { logsDirectory, recordDirectory } from "../model/state-layout.ts";
import { checkCommand } from "../process/check-command.ts";
import { parseCommandLine } from "../process/command-line.ts";
import { findExecutable } from "../process/find-executable.ts";
import { reportExecResult, withSignals } from "./exec-exit.ts";
import * as read from "./exec-options.ts";
import { isClosedPipe, tryWrite, write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, usageError } from "./options.ts";
import { quoteForShell } from "./shell-quote.ts";
import { runCommand } from "./run-command.ts";
import { findDroverCommand } from "./drover-command.ts";

export const execCommand: CommandSpec = {
  name: "exec",
  summary: "run one command and record it",
  placeholders: '"COMMAND" | -- ARGV...',
  examples: [
    ['drover exec "npm test" --timeout 60', "a command line; uses a shell only if it needs one"],
    ["drover exec -- grep -r 'two words' src", "exact arguments, never a shell"],
    ['drover exec "make" --cwd build --env CC=clang --json', "the result as JSON"],
  ],
  options: read.execOptions,
  run: runExec,
};

/** The entry point of the exec bundle. Keep the imports of this file small: they decide the startup time of `drover exec`. */
export function main(argv: readonly string[]): Promise<never> {
  return runCommand(execCommand, argv.slice(1));
}

async function runExec(input: CommandInput): Promise<number> {
  const { options } = input;
  const json = options["json"] === true;
  const project = await findTrustedProject(input);
  const request = readRequest(input, project);
  // Check before anything is written to the state directory, so that a bad request leaves nothing behind.
  checkCommand(request.command);
  const recording = await openExecRecording(request, input, project);
  let closedStream: "stdout" | "stderr" | null = null;
  const execute = (signal: AbortSignal, stop: () => void, wasInterrupted: () => boolean): Promise<ExecRecord> => {
    if (!json)
      request.capture.onOutput = (stream, chunk) => {
        const writeResult = tryWriteOutput(stream, chunk);
        if (writeResult === "closed") closedStream ??= stream;
        if (writeResult !== "written") stop();
      };
    return recording.run(signal, wasInterrupted);
  };
  const record = await withSignals(request, execute, { quiet: options["quiet"] === true });
  await recording.close();
  if (json) write(1, toJsonLine(await loadAndConvert(record)));
  return reportExecResult(record, {
    json,
    quiet: options["quiet"] === true,
    showCommand: recording.recordedAs === "run" ? toShowCommand(input) : null,
    closedStream,
    redact: recording.redactor.text,
  });
}

/** Loads the trust prompt only if the directory has untrusted settings. */
async function findTrustedProject(input: CommandInput): Promise<Project> {
  const project = await findProject(input.env, input.cwd);
  if (project.ignoredKeys.length === 0) return project;
  const { resolveTrust } = await import("./resolve-trust.ts");
  return resolveTrust(input, project, {});
}

/**
 * Returns the command that shows the run. `exec` always writes to the local record, so the variables that would point other
 * commands elsewhere are unset.
 */
function toShowCommand({ env }: CommandInput): string {
  const unset = ["DROVER_API_URL", "DATABASE_URL"].filter((name) => env[name]).map((name) => `-u ${name} `);
  return `${unset.length > 0 ? `env ${unset.join("")}` : ""}${findDroverCommand()} runs show`;
}

function readRequest(input: CommandInput, project: Project): ExecRequest {
  const { options, env } = input;
  const { config, locations } = project;
  const { argv, display } = readCommand(input, read.readUseShell(options, config));
  const { run_id, ...correlation } = read.readCorrelation(options, env);
  const capture = read.readCapture(options, config);
  const cwd = options["cwd"];
  const workingDirectory = typeof cwd === "string" ? resolve(input.cwd, cwd) : input.cwd;
  const { repo_sha, repo_root } = findCheckout(workingDirectory, correlation.repo_sha, env);
  return {
    command: {
      executable: argv[0]!,
      arguments: argv.slice(1),
      workingDirectory,
      environment: read.readEnvironment(options),
      timeoutMs: read.readTimeoutMs(options, config),
      limits: read.readLimits(options),
    },
    display,
    options: {
      ...read.readStartOptions(options, config, env),
      // Drover's own record may be in the working directory, and grows with the command's output.
      uncounted: { folders: [locations.stateDirectory] },
    },
    capture,
    spillDirectory:
      options["spill"] || capture.mode === "file" ? logsDirectory(recordDirectory(locations.stateDirectory)) : null,
    parentRunId: run_id,
    correlation: { ...correlation, repo_sha },
    repoRoot: repo_root,
  };
}

function readCommand({ positionals, rest, env, cwd }: CommandInput, useShell: "auto" | boolean) {
  if (rest && positionals.length > 0)
    throw usageError("Pass either one quoted command or `-- ARGV...`, not both.", "exec");
  if (positionals.length > 1) {
    throw new RequestError({
      code: "DROVER-USE-001",
      field: "COMMAND",
      message: `exec takes one quoted command, or arguments after --; it got ${positionals.length} arguments.`,
      next: `Write drover exec "${positionals.join(" ")}" or drover exec -- ${positionals.join(" ")}`,
    });
  }
  if (rest && useShell !== true) {
    if (!rest[0]) throw emptyCommand();
    return { argv: rest, display: rest.map(quoteForShell).join(" ") };
  }
  const line = rest ? rest.map(quoteForShell).join(" ") : (positionals[0] ?? "");
  if (line.trim() === "") throw emptyCommand();
  const parsed = parseCommandLine(line, useShell, {
    isOnPath: (name) => "found" in findExecutable(name, env["PATH"], cwd),
  });
  return { argv: [parsed.executable, ...parsed.arguments], display: line };
}

function emptyCommand(): RequestError {
  return new RequestError({
    code: "DROVER-USE-002",
    field: "COMMAND",
    message: "The command is empty.",
    next: 'Pass a command, for example drover exec "echo hello".',
  });
}

/** Writes output of the command. If that fails, for example because of a closed pipe or a full disk, the command is stopped. */
function tryWriteOutput(stream: "stdout" | "stderr", chunk: Uint8Array): "written" | "closed" | "failed" {
  try {
    write(stream === "stdout" ? 1 : 2, chunk);
    return "written";
  } catch (error) {
    if (isClosedPipe(error)) return "closed";
    tryWrite(2, `drover: cannot write the output of the command: ${toMessage(error)}\n`);
    return "failed";
  }
}

function toMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

async function loadAndConvert(record: ExecRecord) {
  const { toExecutionJson } = await import("./exec-json.ts");
  return toExecutionJson(record);
}
