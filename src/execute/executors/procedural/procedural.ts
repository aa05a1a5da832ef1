import { RequestError } from "../../../model/errors.ts";
import type { Executor, Invocation, Outcome, RunContext } from "../../../model/executor.ts";
import type { Redactor, RunningProcess } from "../../../model/process.ts";
import { type ResolveOptions, resolveCommand } from "../../executions/resolve-command.ts";
import { createFailedOutcome } from "../../../model/outcome.ts";
import { toFailureReason } from "../../executions/failure-reason.ts";
import { emitOutput } from "../../journal/output-events.ts";
import { toStopOutcome } from "../../supervise/stop-outcome.ts";
import { createResultReader } from "./result-reader.ts";

export interface ProceduralOptions extends ResolveOptions {
  redactor: Redactor;
  /** The maximum size of result_text. Longer text keeps its beginning and its end. */
  maxOutputBytes: number;
  /** Validates a result against a schema. Returns the problems, or an empty list if it is valid. */
  checkOutput: (schema: object, value: unknown) => Promise<{ path: string; message: string }[]>;
}

/** Longer output is not parsed as JSON. */
const maxDataBytes = 16 * 1024 * 1024;
const maxErrorCharacters = 500;

/** Runs the agent's command with the run's parameters as arguments. The command's output is the run's result. */
export function createProceduralExecutor(options: ProceduralOptions): Executor {
  return {
    name: "procedural",
    can: { resume: false, fork: false, ask: false, input: false },
    async run(invocation, context) {
      if (invocation.mode !== "start")
        return createFailedOutcome(
          "refused",
          "Procedural agents cannot resume or fork a session. Start a new run instead.",
        );
      if (!invocation.agent.command)
        return createFailedOutcome("refused", `The agent ${invocation.agent.name} has no command.`);
      const command = resolveCommand(
        invocation.agent.command,
        options,
        invocation.parameters,
        invocation.agent.list_style,
      );
      if (!command.ok)
        return createFailedOutcome("refused", `The command cannot take these parameters: ${command.message}.`);
      const running = await startOrRefuse({ executable: command.executable, arguments: command.arguments }, context);
      if ("status" in running) return running;
      const outcome = await readResult(running, invocation, context, options);
      const isNotFound = outcome.status === "failed" && outcome.reason === "command_not_found";
      return isNotFound && command.notFoundMessage !== null
        ? { ...outcome, message: command.notFoundMessage }
        : outcome;
    },
  };
}

async function startOrRefuse(
  command: Parameters<RunContext["start"]>[0],
  context: RunContext,
): Promise<RunningProcess | Outcome> {
  try {
    return await context.start({ ...command, workingDirectory: context.dirs.work });
  } catch (error) {
    if (error instanceof RequestError) return createFailedOutcome("refused", error.message);
    throw error;
  }
}

async function readResult(
  running: RunningProcess,
  { agent }: Invocation,
  context: RunContext,
  options: ProceduralOptions,
): Promise<Outcome> {
  running.stdin?.end();
  const stdoutReader = createResultReader({
    maxTextBytes: options.maxOutputBytes,
    maxDataBytes,
    redactor: options.redactor,
  });
  const stderrReader = createResultReader({ maxTextBytes: 16 * 1024, maxDataBytes: 0, redactor: options.redactor });
  const { emit } = context;
  const [processResult] = await Promise.all([
    running.result,
    emitOutput(running.stdout, "stdout", emit, stdoutReader),
    emitOutput(running.stderr, "stderr", emit, stderrReader),
  ]);
  const { text, data, missingData } = stdoutReader.take();
  if (missingData)
    await emit({
      type: "error",
      code: missingData.code,
      message: `${missingData.message}. The run has no result_data.`,
    });
  if (processResult.stopped) return toStopOutcome(processResult.stopped, text);
  if (processResult.error) {
    const excerpt = stderrReader.take().text.trim().slice(0, maxErrorCharacters);
    const message =
      processResult.error.code === "DROVER-EXE-003" && excerpt !== "" ? excerpt : processResult.error.message;
    return {
      ...createFailedOutcome(toFailureReason(processResult), message),
      exit_code: processResult.exitCode,
      text,
      ...(data ? { data: data.value } : {}),
    };
  }
  if (missingData && agent.output_schema)
    return {
      ...createFailedOutcome(
        "invalid_output",
        `${missingData.message}. It cannot be checked against the agent's output_schema.`,
      ),
      exit_code: processResult.exitCode,
      text,
    };
  const problems = agent.output_schema ? await options.checkOutput(agent.output_schema, data?.value ?? null) : [];
  if (problems.length > 0) {
    const [first] = problems;
    const message = `The output does not match the agent's output_schema: ${first!.path === "" ? "" : `${first!.path} `}${first!.message}${problems.length > 1 ? ` (and ${problems.length - 1} more)` : ""}.`;
    return {
      ...createFailedOutcome("invalid_output", data ? message : `${message} The output is not JSON.`),
      exit_code: processResult.exitCode,
      text,
      ...(data ? { data: data.value } : {}),
    };
  }
  return { status: "completed", exit_code: processResult.exitCode, text, ...(data ? { data: data.value } : {}) };
}
