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
  /** The limit of result_text. */
  maxOutputBytes: number;
  /** Validates a result against a schema. Returns the problems, or an empty list if it is valid. */
  checkOutput: (schema: object, value: unknown) => Promise<{ path: string; message: string }[]>;
}

/** Longer output is not parsed as JSON. */
const maxDataBytes = 16 * 1024 * 1024;
const maxErrorCharacters = 500;

/** Runs a command with its parameters as options. The command's output is the run's result. */
export function createProceduralExecutor(options: ProceduralOptions): Executor {
  return {
    name: "procedural",
    can: { resume: false, fork: false, ask: false, input: false },
    async run(invocation, context) {
      if (invocation.mode !== "start")
        return createFailedOutcome("refused", "Procedural agents do not support resumption");
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
      return isNotFound && command.missing !== null ? { ...outcome, message: command.missing } : outcome;
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
  const result = createResultReader({ maxTextBytes: options.maxOutputBytes, maxDataBytes, redactor: options.redactor });
  const stderr = createResultReader({ maxTextBytes: 16 * 1024, maxDataBytes: 0, redactor: options.redactor });
  const { emit } = context;
  const [ended] = await Promise.all([
    running.result,
    emitOutput(running.stdout, "stdout", emit, result),
    emitOutput(running.stderr, "stderr", emit, stderr),
  ]);
  const { text, data, withheld } = result.take();
  if (withheld)
    await emit({ type: "error", code: withheld.code, message: `${withheld.message}. The run has no result_data.` });
  if (ended.stopped) return toStopOutcome(ended.stopped, text);
  if (ended.error) {
    const excerpt = stderr.take().text.trim().slice(0, maxErrorCharacters);
    const message = ended.error.code === "DROVER-EXE-003" && excerpt !== "" ? excerpt : ended.error.message;
    return {
      ...createFailedOutcome(toFailureReason(ended), message),
      exit_code: ended.exitCode,
      text,
      ...(data ? { data: data.value } : {}),
    };
  }
  if (withheld && agent.output_schema)
    return {
      ...createFailedOutcome(
        "invalid_output",
        `${withheld.message}. It cannot be checked against the agent's output_schema.`,
      ),
      exit_code: ended.exitCode,
      text,
    };
  const problems = agent.output_schema ? await options.checkOutput(agent.output_schema, data?.value ?? null) : [];
  if (problems.length > 0) {
    const [first] = problems;
    const message = `The output does not match the agent's output_schema: ${first!.path === "" ? "" : `${first!.path} `}${first!.message}${problems.length > 1 ? ` (and ${problems.length - 1} more)` : ""}.`;
    return {
      ...createFailedOutcome("invalid_output", data ? message : `${message} The output is not JSON.`),
      exit_code: ended.exitCode,
      text,
      ...(data ? { data: data.value } : {}),
    };
  }
  return { status: "completed", exit_code: ended.exitCode, text, ...(data ? { data: data.value } : {}) };
}
