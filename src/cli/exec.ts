import { resolve } from "node:path";
import { findWorkedOn } from "../define/repo-sha.ts";
import { type ExecRecord, type ExecRequest, execOnRecord } from "../execute/exec.ts";
import { findLocal, type Local, localUser, newLocalIds, openLocalStore } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import { looksSecret } from "../model/secret-names.ts";
import { checkCommand } from "../process/check.ts";
import { parseCommandLine } from "../process/command-line.ts";
import { findExecutable } from "../process/lookup.ts";
import { interruptedExecutions } from "../record/audit/interrupted.ts";
import { currentOwner } from "../record/audit/owner.ts";
import type { SqliteStore } from "../record/open.ts";
import { createRedactor } from "../redact/redactor.ts";
import { exitCodeOf, withSignals } from "./exec-end.ts";
import * as read from "./exec-options.ts";
import { isClosedPipe, tryWrite, write } from "./io.ts";
import { type CommandInput, type CommandSpec, usage } from "./options.ts";
import { quoted } from "./quoted.ts";
import { retainIfDue } from "./retain.ts";
import { runCommand } from "./run-command.ts";

export const execCommand: CommandSpec = {
  name: "exec",
  summary: "run one command, on the record",
  takes: '"COMMAND" | -- ARGV...',
  examples: [
    ['drover exec "npm test" --timeout 60', "a command line; a shell only where it needs one"],
    ["drover exec -- grep -r 'two words' src", "exact arguments, never a shell"],
    ['drover exec "make" --cwd build --env CC=clang --json', "the result as JSON"],
  ],
  options: read.execOptions,
  run: runExec,
};

/** The cold path: this file and what it imports is one bundle, kept small. */
export function main(argv: readonly string[]): Promise<never> {
  return runCommand(execCommand, argv.slice(1));
}

async function runExec(input: CommandInput): Promise<number> {
  const { options } = input;
  const json = options["json"] === true;
  const local = await findLocal(input.env, input.cwd);
  const request = readRequest(input, local);
  // before the state directory is touched: a bad request leaves nothing behind
  checkCommand(request.command);
  const store = local.config.execution.audit.enabled ? await openLocalStore(local) : null;
  const newId = newLocalIds();

  const carryOut = (signal: AbortSignal, stop: () => void, wasInterrupted: () => boolean): Promise<ExecRecord> => {
    if (!json) request.capture.onOutput = (stream, chunk) => show(stream, chunk, stop);
    return execOnRecord(
      request,
      {
        store,
        redactor: createRedactor({ variables: input.env, values: givenSecrets(request) }),
        now: () => new Date(),
        newId,
        owner: currentOwner(),
        createdBy: localUser(),
        wasInterrupted,
        ...(store ? { whileRunning: () => housekeeping("looking for interrupted runs", () => sweep(store)) } : {}),
      },
      signal,
    );
  };
  const record = await withSignals(request, carryOut, { quiet: options["quiet"] === true });
  if (store) await housekeeping("removing old records", () => retainIfDue(store, local, new Date()));
  await store?.close();
  if (json) write(1, `${JSON.stringify(await resultJson(record))}\n`);
  return exitCodeOf(record, { json, quiet: options["quiet"] === true, lookUp: store ? lookUp(input) : null });
}

/** What shows the record of this place, where other commands are led elsewhere: `exec` needs nobody, and asks nobody. */
function lookUp({ env }: CommandInput): string {
  const leading = ["DROVER_API_URL", "DATABASE_URL"].filter((name) => env[name]).map((name) => `-u ${name} `);
  return `${leading.length > 0 ? `env ${leading.join("")}` : ""}drover runs show`;
}

function readRequest(input: CommandInput, local: Local): ExecRequest {
  const { options, env } = input;
  const { config, places } = local;
  const { argv, display } = readCommand(input, read.readUseShell(options, config));
  const { run_id, ...correlation } = read.readCorrelation(options, env);
  const capture = read.readCapture(options, config);
  const cwd = options["cwd"];
  const workingDirectory = typeof cwd === "string" ? resolve(input.cwd, cwd) : input.cwd;
  const { repo_sha, repo_root } = findWorkedOn(workingDirectory, correlation.repo_sha, env);
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
    // Drover's own record may lie in there, and grows by what the command writes
    options: { ...read.readStartOptions(options, config, env), uncounted: { folders: [places.stateDirectory] } },
    capture,
    spillDirectory: options["spill"] || capture.mode === "file" ? resolve(places.stateDirectory, "logs") : null,
    parentRunId: run_id,
    correlation: { ...correlation, repo_sha },
    repoRoot: repo_root,
  };
}

function readCommand({ positionals, rest, env, cwd }: CommandInput, useShell: "auto" | boolean) {
  if (rest && positionals.length > 0) throw usage("Give either one quoted command or `-- ARGV...`, not both.", "exec");
  if (positionals.length > 1) {
    throw new RequestError({
      code: "DROVER-USE-001",
      field: "COMMAND",
      message: `The command is ${positionals.length} words; exec takes one quoted string, or words after --.`,
      next: `Write drover exec "${positionals.join(" ")}" or drover exec -- ${positionals.join(" ")}`,
    });
  }
  if (rest && useShell !== true) {
    if (!rest[0]) throw emptyCommand();
    return { argv: rest, display: rest.map(quoted).join(" ") };
  }
  const line = rest ? rest.map(quoted).join(" ") : (positionals[0] ?? "");
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
    next: 'Give one, as in drover exec "echo hello".',
  });
}

/** A reader that is gone, or a full disk behind it, ends the command, but never its record. */
function show(stream: "stdout" | "stderr", chunk: Uint8Array, stop: () => void): void {
  try {
    write(stream === "stdout" ? 1 : 2, chunk);
  } catch (error) {
    if (!isClosedPipe(error)) tryWrite(2, `drover: the output cannot be written: ${messageOf(error)}\n`);
    stop();
  }
}

/** Variables given for this command hold secrets too, beside those of the same names that Drover itself has. */
function givenSecrets({ command }: ExecRequest): { name: string; value: string }[] {
  return Object.entries(command.environment ?? {}).flatMap(([name, value]) =>
    looksSecret(name) && value.length >= 6 ? [{ name, value }] : [],
  );
}

/** What is not the command's own business must not be its end. */
async function housekeeping(what: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    tryWrite(2, `drover: ${what} failed, and is tried again next time: ${messageOf(error)}\n`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** What an earlier Drover left half-done is looked for while the command runs, where it costs nothing. */
async function sweep(store: SqliteStore): Promise<void> {
  if ((await interruptedExecutions(store)).length === 0) return;
  const { sweepInterrupted } = await import("./sweep.ts");
  await sweepInterrupted(store);
}

async function resultJson(record: ExecRecord) {
  const { toExecutionJson } = await import("./exec-json.ts");
  return toExecutionJson(record);
}
