import type { Correlation, ExecutionEnd, ExecutionStart } from "../../model/execution.ts";
import type { Command, ProcessEnd, Limits, StartOptions } from "../../model/process.ts";
import { buildEnvironment } from "../../process/environment.ts";

export interface StartingExecution extends Pick<ExecutionStart, "execution_id" | "owner" | "correlation"> {
  command: Command & { workingDirectory: string };
  /** The command line as a person typed it. By default it is built from argv. */
  display?: string;
  options: Pick<StartOptions, "environment" | "parentEnvironment">;
  /** Limits of the run, in addition to the command's own. */
  limits?: Limits;
  timeoutMs: number | null;
  now: Date;
}

/** The record of a command that is about to be spawned. Variables are recorded by name, never by value. */
export function buildExecutionStart({ command, options, ...starting }: StartingExecution): ExecutionStart {
  const argv = [command.executable, ...(command.arguments ?? [])];
  const { withheld } = buildEnvironment({
    options: options.environment,
    parent: options.parentEnvironment ?? process.env,
    variables: command.environment,
  });
  return {
    execution_id: starting.execution_id,
    command: starting.display ?? argv.map(quoteForShell).join(" "),
    argv,
    working_directory: command.workingDirectory,
    started_at: starting.now.toISOString(),
    timeout_ms: command.timeoutMs ?? starting.timeoutMs,
    limits: toSnakeCase({ ...starting.limits, ...command.limits }),
    environment: {
      mode: options.environment?.mode ?? "merge",
      given: Object.keys(command.environment ?? {}).sort(),
      withheld: withheld.sort(),
    },
    owner: starting.owner,
    correlation: starting.correlation,
  };
}

function quoteForShell(argument: string): string {
  return /^[\w@%+=:,./-]+$/.test(argument) ? argument : `'${argument.replaceAll("'", "'\\''")}'`;
}

/** Converts the names of limits to those in agent files. */
function toSnakeCase(limits: Limits): Record<string, number> {
  const entries = Object.entries(limits).filter((entry): entry is [string, number] => entry[1] !== undefined);
  return Object.fromEntries(
    entries.map(([name, value]) => [name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`), value]),
  );
}

export interface OutputTotals {
  stdoutBytes: number;
  stderrBytes: number;
  truncated: boolean;
}

/** The record of a command whose processes have all ended. */
export function buildExecutionEnd(execution_id: string, ended: ProcessEnd, output: OutputTotals): ExecutionEnd {
  const { resources, error } = ended;
  return {
    execution_id,
    exit_code: ended.exitCode,
    signal: ended.signal,
    stopped: ended.stopped,
    success: error === null,
    timed_out: ended.stopped === "timeout",
    interrupted: false,
    ended_at: ended.endTime.toISOString(),
    duration_ms: ended.durationMs,
    isolation: ended.isolation,
    leftovers: ended.leftovers,
    resources: resources && {
      user_ms: resources.userMs,
      system_ms: resources.systemMs,
      max_rss_kb: resources.maxRssKb,
    },
    error: error && { code: error.code, message: error.message },
    stdout_bytes: output.stdoutBytes,
    stderr_bytes: output.stderrBytes,
    truncated: output.truncated,
  };
}

/** Environment variables for every process of a run. A nested Drover reads from them which run it belongs to. */
export function buildDroverVariables(
  run_id: string,
  correlation: Correlation,
  repoRoot: string | undefined,
): Record<string, string> {
  const variables: Record<string, string> = { DROVER_RUN_ID: run_id };
  for (const [key, value] of Object.entries(correlation))
    if (value !== null) variables[`DROVER_${key.toUpperCase()}`] = value;
  if (correlation.repo_sha !== null && repoRoot !== undefined) variables["DROVER_REPO_ROOT"] = repoRoot;
  return variables;
}
