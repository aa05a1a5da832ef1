import { resolve } from "node:path";
import { readCorrelation } from "../cli/exec-options.ts";
import type { CommandInput } from "../cli/options.ts";
import { quoteForShell } from "../cli/shell-quote.ts";
import { openExecRecording } from "../compose/exec-recording.ts";
import { findCheckout } from "../define/checkout.ts";
import { findProject, type Project } from "../local.ts";
import type { Command, CommandResult } from "../model/process.ts";
import { checkCommand } from "../process/check-command.ts";
import {
  type ExecuteOptions,
  toCommand,
  toStartOptions,
  applyCaptureDefaults,
  applyTimeout,
} from "./execute-options.ts";

/** Runs a command like `drover exec`, with the settings of drover.yaml where the caller passes none. */
export async function executeOnRecord(
  commandOrLine: string | Command,
  options: ExecuteOptions,
): Promise<{ result: CommandResult; runId: string | null }> {
  const { stateDir, signal = new AbortController().signal, parentEnvironment: env = process.env } = options;
  const cwd = process.cwd();
  const input = { options: {}, positionals: [], rest: null, extraOptions: [], env, cwd };
  const project = await findProject(
    stateDir === undefined ? env : { ...env, DROVER_STATE_DIR: resolve(stateDir) },
    cwd,
  );
  if (project.ignoredKeys.length > 0) await warnAboutUntrusted(input, project);
  const { config, locations } = project;
  const command = toCommand(commandOrLine, applyTimeout(options, config), config.execution.use_shell);
  // Check before anything is written to the state directory, so that a bad request leaves nothing behind
  checkCommand(command);
  const { run_id, ...correlation } = readCorrelation({}, env);
  const { repo_sha, repo_root } = findCheckout(command.workingDirectory, correlation.repo_sha, env);
  const request = {
    command,
    display:
      typeof commandOrLine === "string"
        ? commandOrLine
        : [command.executable, ...(command.arguments ?? [])].map(quoteForShell).join(" "),
    options: {
      isolation: config.isolation,
      environment: config.execution.environment,
      parentEnvironment: env,
      uncounted: { folders: [locations.stateDirectory] },
      ...toStartOptions(options),
    },
    capture: applyCaptureDefaults(options, config),
    spillDirectory: null,
    parentRunId: run_id,
    correlation: { ...correlation, repo_sha },
    repoRoot: repo_root,
  };
  const recording = await openExecRecording(request, input, project);
  try {
    const { runId, result } = await recording.run(signal);
    return { result, runId: recording.recordedAs === null ? null : runId };
  } finally {
    await recording.close();
  }
}

/** Loads the code that describes the ignored settings only if there are some. */
async function warnAboutUntrusted(input: CommandInput, project: Project): Promise<void> {
  const { describeUntrusted, findUntrusted } = await import("../cli/resolve-trust.ts");
  for (const message of describeUntrusted(findUntrusted(input, project, {}), input.env))
    process.emitWarning(message, "DroverWarning");
}
