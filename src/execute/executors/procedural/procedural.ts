import type { Readable } from "node:stream";
import { RequestError } from "../../../model/errors.ts";
import type { Executor, Invocation, Outcome, RunContext } from "../../../model/executor.ts";
import type { OutputStream, Redactor, Running } from "../../../model/process.ts";
import type { FailureReason } from "../../../model/states.ts";
import { type CommandPlace, commandWords } from "../../command-path.ts";
import { endReason } from "../../end-reason.ts";
import { inTurn } from "../../in-turn.ts";
import { createChunkReader } from "../../output-events.ts";
import { outcomeOfStop } from "../../stop-outcome.ts";
import { createResultReader } from "./result.ts";

export interface ProceduralOptions extends CommandPlace {
  redactor: Redactor;
  /** Of result_text. */
  maxOutputBytes: number;
  /** What is wrong with a result for a schema; nothing where it fits. */
  checkOutput: (schema: object, value: unknown) => Promise<{ path: string; message: string }[]>;
}

/** Longer output is not parsed. */
const maxDataBytes = 16 * 1024 * 1024;
const errorCharacters = 500;

/** A command with its parameters as options; what it prints is its result. */
export function createProceduralExecutor(options: ProceduralOptions): Executor {
  return {
    name: "procedural",
    can: { resume: false, fork: false, ask: false, input: false },
    async run(invocation, context) {
      if (invocation.mode !== "start") return failed("refused", "Procedural agents do not support resumption");
      if (!invocation.agent.command) return failed("refused", `The agent ${invocation.agent.name} has no command.`);
      const words = commandWords(invocation.agent.command, options, invocation.parameters, invocation.agent.list_style);
      if (!words.ok) return failed("refused", `The command cannot be given these parameters: ${words.message}.`);
      const running = await startOrRefuse({ executable: words.executable, arguments: words.arguments }, context);
      if ("status" in running) return running;
      return follow(running, invocation, context, options);
    },
  };
}

async function startOrRefuse(
  command: Parameters<RunContext["start"]>[0],
  context: RunContext,
): Promise<Running | Outcome> {
  try {
    return await context.start({ ...command, workingDirectory: context.dirs.work });
  } catch (error) {
    if (error instanceof RequestError) return failed("refused", error.message);
    throw error;
  }
}

async function follow(
  running: Running,
  { agent }: Invocation,
  context: RunContext,
  options: ProceduralOptions,
): Promise<Outcome> {
  running.stdin?.end();
  const result = createResultReader({ maxTextBytes: options.maxOutputBytes, maxDataBytes, redactor: options.redactor });
  const said = createResultReader({ maxTextBytes: 16 * 1024, maxDataBytes: 0, redactor: options.redactor });
  const emit = inTurn(context.emit);
  const [ended] = await Promise.all([
    running.result,
    readAll(running.stdout, "stdout", emit, result.push),
    readAll(running.stderr, "stderr", emit, said.push),
  ]);
  const { text, data, jsonTooLong } = result.take();
  if (ended.stopped) return outcomeOfStop(ended.stopped, text);
  if (ended.error) {
    const stderr = said.take().text.trim().slice(0, errorCharacters);
    const told = ended.error.code === "DROVER-EXE-003" && stderr !== "" ? stderr : ended.error.message;
    return {
      ...failed(endReason(ended), told),
      exit_code: ended.exitCode,
      text,
      ...(data ? { data: data.value } : {}),
    };
  }
  if (jsonTooLong)
    await emit({
      type: "error",
      code: "result_truncated",
      message: `The output is longer than ${maxDataBytes} bytes and was not read as result_data.`,
    });
  const faults = agent.output_schema ? await options.checkOutput(agent.output_schema, data?.value ?? null) : [];
  if (faults.length > 0) {
    const [first] = faults;
    const message = `The output does not fit the agent's output_schema: ${first!.path === "" ? "" : `${first!.path} `}${first!.message}${faults.length > 1 ? ` (and ${faults.length - 1} more)` : ""}.`;
    return {
      ...failed("invalid_output", data ? message : `${message} It is not JSON.`),
      exit_code: ended.exitCode,
      text,
      ...(data ? { data: data.value } : {}),
    };
  }
  return { status: "completed", exit_code: ended.exitCode, text, ...(data ? { data: data.value } : {}) };
}

async function readAll(
  stream: Readable | null,
  name: OutputStream,
  emit: RunContext["emit"],
  push: (chunk: Uint8Array) => void,
): Promise<void> {
  if (stream === null) return;
  const reader = createChunkReader(name);
  for await (const chunk of stream) {
    const bytes = chunk as Uint8Array; // no encoding is set
    push(bytes);
    for (const event of reader.push(bytes)) await emit(event);
  }
  for (const event of reader.end()) await emit(event);
}

function failed(reason: FailureReason, message: string): Extract<Outcome, { status: "failed" }> {
  return { status: "failed", reason, message, exit_code: null };
}
