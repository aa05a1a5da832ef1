import type { Executor, Outcome, RunContext } from "../../model/executor.ts";
import { getWorkspaceKind } from "../workspace/workspace-kind.ts";
import { toStopOutcome, getStopReason } from "../supervise/stop-outcome.ts";
import type { Done, ExecutorDefinition, Job } from "./definition.ts";
import { createInputs, type Inputs } from "./inputs.ts";
import { keepResult } from "./keep-result.ts";
import { readFileClock } from "./file-clock.ts";
import { createProgress } from "./progress.ts";
import { buildDefaultPrompt } from "./prompt.ts";
import { runCli } from "./run-cli.ts";
import { toFailureOutcome, RunFailure } from "./run-failure.ts";

export type { Cli, CliResult, Done, ExecutorDefinition, Job } from "./definition.ts";
export { RunFailure } from "./run-failure.ts";

/**
 * Builds an executor from its definition. Handles what all executors have in common: progress, prompts, which files
 * belong to the run, what counts as success, and how each kind of failure is reported.
 */
export function defineExecutor(definition: ExecutorDefinition): Executor {
  const can = { resume: false, fork: false, ask: false, input: false, ...definition.can };
  return {
    name: definition.name,
    can,
    ...(definition.variables === undefined ? {} : { variables: definition.variables }),
    async run(invocation, context) {
      if (invocation.mode !== "start" && !can[invocation.mode])
        return toFailureOutcome(
          new RunFailure("refused", `The executor ${definition.name} cannot ${invocation.mode} a session.`),
        );
      if (typeof invocation.agent.system_prompt === "object" && !definition.takesPreset)
        return toFailureOutcome(new RunFailure("refused", describeUnsupportedPreset(definition.name)));
      const inputs = createInputs(invocation, context.dirs.work);
      try {
        return await runJob(definition, toJob(definition, invocation, context, inputs), inputs);
      } finally {
        await inputs.remove();
      }
    },
  };
}

function describeUnsupportedPreset(executor: string): string {
  return `The executor ${executor} does not support the system prompt preset of Claude Code. Write the agent's system_prompt as text, or use the executor claude-sdk.`;
}

async function runJob(definition: ExecutorDefinition, job: Job, inputs: Inputs): Promise<Outcome> {
  const { signal } = job;
  await job.reportProgress(10);
  let startTime: bigint | null = null;
  const work = async (): Promise<Done> => {
    await definition.setupWorkDir?.(job);
    // In a continued session, files of the run's earlier attempts count too.
    startTime =
      job.invocation.continues && getWorkspaceKind(job.invocation) === "scratch" ? 0n : await readFileClock(job.tmpDir);
    const done = await definition.execute(job);
    return typeof done === "string" ? { text: done } : (done ?? {});
  };
  const done = await work().catch((error: unknown): Done => ({ outcome: toErrorOutcome(error, signal) }));
  return keepResult(done, { job, inputs, since: startTime, collect: definition.collectFiles?.bind(definition) }).catch(
    (error: unknown) => toErrorOutcome(error, signal),
  );
}

/** While a run is being stopped, any error is a consequence of that. Otherwise, only a RunFailure is expected. */
function toErrorOutcome(error: unknown, signal: AbortSignal): Outcome {
  if (signal.aborted) return toStopOutcome(getStopReason(signal), error instanceof RunFailure ? error.text : undefined);
  if (error instanceof RunFailure) return toFailureOutcome(error);
  throw error;
}

function toJob(
  definition: ExecutorDefinition,
  invocation: Job["invocation"],
  context: RunContext,
  inputs: Inputs,
): Job {
  return {
    invocation,
    prompt: definition.buildPrompt?.(invocation) ?? buildDefaultPrompt(invocation),
    systemPrompt: typeof invocation.agent.system_prompt === "string" ? invocation.agent.system_prompt : null,
    parameters: invocation.parameters,
    workDir: context.dirs.work,
    homeDir: context.dirs.home,
    get tmpDir() {
      return context.dirs.tmp;
    },
    runnerDir: context.runnerDirectory,
    signal: context.signal,
    context,
    reportProgress: createProgress(context.emit),
    writeInput: inputs.write,
    runCli: (cli) => runCli(cli, context),
  };
}
