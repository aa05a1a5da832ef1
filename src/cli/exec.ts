import { resolve } from "node:path";
import { protectedPaths } from "../define/protected-paths.ts";
import { findCheckout } from "../define/checkout.ts";
import { type ExecRecord, type ExecRequest, execOnRecord, type NestedAccess } from "../execute/exec.ts";
import type { NestedSink } from "../execute/nested/nested-sink.ts";
import { findLocal, type Local, localUser, createExecToken, createLocalIds, openLocalStore } from "../local.ts";
import { RequestError } from "../model/errors.ts";
import { looksSecret } from "../model/secret-names.ts";
import { logsDirectory, recordDirectory, runsDirectory } from "../model/state-layout.ts";
import { createNestedSocketPath, openNestedSocket } from "../compose/nested-socket.ts";
import { checkCommand } from "../process/check-command.ts";
import { parseCommandLine } from "../process/command-line.ts";
import { findExecutable } from "../process/find-executable.ts";
import { findInterruptedExecutions } from "../record/audit/interrupted-executions.ts";
import { currentOwner } from "../record/audit/owner.ts";
import type { SqliteStore } from "../record/open.ts";
import { createRedactor } from "../redact/redactor.ts";
import { exitCodeOf, withSignals } from "./exec-exit.ts";
import * as read from "./exec-options.ts";
import { isClosedPipe, tryWrite, write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, usage } from "./options.ts";
import { shellQuote } from "./shell-quote.ts";
import { retainIfDue } from "./retain-if-due.ts";
import { runCommand } from "./run-command.ts";
import { droverCommand } from "./drover-command.ts";

export const execCommand: CommandSpec = {
  name: "exec",
  summary: "run one command and record it",
  takes: '"COMMAND" | -- ARGV...',
  examples: [
    ['drover exec "npm test" --timeout 60', "a command line; uses a shell only if it needs one"],
    ["drover exec -- grep -r 'two words' src", "exact arguments, never a shell"],
    ['drover exec "make" --cwd build --env CC=clang --json', "the result as JSON"],
  ],
  options: read.execOptions,
  run: runExec,
};

/** Entry point of the exec bundle. Keep its imports small: they decide the startup time of `drover exec`. */
export function main(argv: readonly string[]): Promise<never> {
  return runCommand(execCommand, argv.slice(1));
}

async function runExec(input: CommandInput): Promise<number> {
  const { options } = input;
  const json = options["json"] === true;
  const local = await findTrustedLocal(input);
  const request = readRequest(input, local);
  // Before the state directory is touched, so that a bad request leaves nothing behind.
  checkCommand(request.command);
  const nested = await openSinkIfNested(input);
  if (nested) attachToRun(request, nested, input.env);
  const store = !nested && local.config.execution.audit.enabled ? await openLocalStore(local) : null;
  Object.assign(request.options, protectedPaths(local.locations.stateDirectory, input.env));
  const newId = createLocalIds();
  const key = createExecToken();

  const redactor = createRedactor({
    variables: input.env,
    values: [...optionSecrets(request), { name: "DROVER_API_KEY", value: key }],
  });
  let closedStream: "stdout" | "stderr" | null = null;
  const execute = (signal: AbortSignal, stop: () => void, wasInterrupted: () => boolean): Promise<ExecRecord> => {
    if (!json)
      request.capture.onOutput = (stream, chunk) => {
        const shown = tryShow(stream, chunk);
        if (shown === "closed") closedStream ??= stream;
        if (shown !== "written") stop();
      };
    return execOnRecord(
      request,
      {
        store,
        ...(nested ? { nested } : {}),
        ...nestedAccessOf(input, local, store !== null, key),
        redactor,
        now: () => new Date(),
        newId,
        owner: currentOwner(),
        createdBy: localUser(),
        wasInterrupted,
        ...(store
          ? { whileRunning: () => runMaintenance("checking for interrupted runs", () => sweep(store, local)) }
          : {}),
      },
      signal,
    );
  };
  const record = await withSignals(request, execute, { quiet: options["quiet"] === true });
  if (store) await runMaintenance("removing old records", () => retainIfDue(store, local, new Date()));
  await store?.close();
  if (json) write(1, jsonLine(await resultJson(record)));
  return exitCodeOf(record, {
    json,
    quiet: options["quiet"] === true,
    showCommand: store ? showCommand(input) : null,
    closedStream,
    redact: redactor.text,
  });
}

/** Inside a run, the outer Drover records this command. The module is loaded only in that case. */
async function openSinkIfNested({ env }: CommandInput): Promise<NestedSink | null> {
  const path = env["DROVER_NESTED_LOG"];
  if (!path) return null;
  const { openNestedSink } = await import("../execute/nested/nested-sink.ts");
  return openNestedSink(path);
}

/** Makes the command part of the outer run. It inherits the run's token through `nestedAccessOf`, not from our environment. */
function attachToRun(
  request: ExecRequest,
  { runId }: NestedSink,
  { DROVER_API_KEY: _key, ...env }: CommandInput["env"],
): void {
  request.parentRunId = runId;
  request.options.parentEnvironment = env;
  if (request.spillDirectory !== null) request.spillDirectory = resolve(env["TMPDIR"] || "/tmp", "drover-spill");
}

/** The environment for Drover commands inside this one. A nested exec passes on the environment of its run. */
function nestedAccessOf(
  input: CommandInput,
  local: Local,
  onRecord: boolean,
  key: string,
): { nestedAccess?: NestedAccess } {
  const { env } = input;
  const inherited = ["DROVER_NESTED_LOG", "DROVER_API_URL", "DROVER_API_KEY", "DROVER_ATTEMPT"];
  const runs = runsDirectory(local.locations.stateDirectory);
  if (env["DROVER_NESTED_LOG"]) {
    const variables = Object.fromEntries(inherited.flatMap((name) => (env[name] ? [[name, env[name]]] : [])));
    return { nestedAccess: { runs, variables, open: () => async () => undefined } };
  }
  if (!onRecord) return {};
  // An address from --env takes precedence.
  const hasAddress = read.readEnvironment(input.options)["DROVER_API_URL"] !== undefined;
  const path = createNestedSocketPath(runs, key);
  const variables = { DROVER_API_URL: `unix:${path}`, DROVER_API_KEY: key };
  const serve = async (run_id: string, origin: string) => {
    const { serveInExec } = await import("../compose/serve-in-exec.ts");
    const report = (message: string): void => tryWrite(2, `drover: ${message}\n`);
    return serveInExec({ input, local, run_id, key, origin, report });
  };
  const onError = (error: unknown): void =>
    tryWrite(2, `drover: nested drover commands cannot reach the API: ${messageOf(error)}\n`);
  const open = (run_id: string) => openNestedSocket(path, (origin) => serve(run_id, origin), onError).close;
  return {
    nestedAccess: hasAddress ? { runs, variables: {}, open: () => async () => undefined } : { runs, variables, open },
  };
}

/** Loads the trust prompt only if the directory has untrusted settings. */
async function findTrustedLocal(input: CommandInput): Promise<Local> {
  const local = await findLocal(input.env, input.cwd);
  if (local.ignoredKeys.length === 0) return local;
  const { resolveTrust } = await import("./resolve-trust.ts");
  return resolveTrust(input, local, {});
}

/**
 * The command that shows the run. `exec` always writes to the local record, so the variables that would point other
 * commands elsewhere are unset.
 */
function showCommand({ env }: CommandInput): string {
  const unset = ["DROVER_API_URL", "DATABASE_URL"].filter((name) => env[name]).map((name) => `-u ${name} `);
  return `${unset.length > 0 ? `env ${unset.join("")}` : ""}${droverCommand()} runs show`;
}

function readRequest(input: CommandInput, local: Local): ExecRequest {
  const { options, env } = input;
  const { config, locations } = local;
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
  if (rest && positionals.length > 0) throw usage("Pass either one quoted command or `-- ARGV...`, not both.", "exec");
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
    return { argv: rest, display: rest.map(shellQuote).join(" ") };
  }
  const line = rest ? rest.map(shellQuote).join(" ") : (positionals[0] ?? "");
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

/** Output that cannot be written, for example to a closed pipe or a full disk, stops the command. */
function tryShow(stream: "stdout" | "stderr", chunk: Uint8Array): "written" | "closed" | "failed" {
  try {
    write(stream === "stdout" ? 1 : 2, chunk);
    return "written";
  } catch (error) {
    if (isClosedPipe(error)) return "closed";
    tryWrite(2, `drover: cannot write the output of the command: ${messageOf(error)}\n`);
    return "failed";
  }
}

/** The secrets in --env options. They are redacted in addition to those of Drover's own environment. */
function optionSecrets({ command }: ExecRequest): { name: string; value: string }[] {
  return Object.entries(command.environment ?? {}).flatMap(([name, value]) =>
    looksSecret(name) && value.length >= 6 ? [{ name, value }] : [],
  );
}

/** A failure of background maintenance is reported, but does not fail the command. */
async function runMaintenance(task: string, work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    tryWrite(2, `drover: ${task} failed and will be retried by the next command: ${messageOf(error)}\n`);
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Finishes the records of interrupted commands. Runs alongside the command, where it costs no time. */
async function sweep(store: SqliteStore, { locations }: Local): Promise<void> {
  if ((await findInterruptedExecutions(store)).length === 0) return;
  const { sweepInterrupted } = await import("./sweep-interrupted.ts");
  await sweepInterrupted(store, locations.stateDirectory);
}

async function resultJson(record: ExecRecord) {
  const { toExecutionJson } = await import("./exec-json.ts");
  return toExecutionJson(record);
}
