import type { Readable } from "node:stream";
import { RequestError } from "../../model/errors.ts";
import type { RunEvent } from "../../model/event.ts";
import type { Executor, Invocation, Outcome, RunContext } from "../../model/executor.ts";
import type { Ended, Running } from "../../model/process.ts";
import { type CommandPlace, commandWords } from "../command-path.ts";
import { endReason } from "../end-reason.ts";
import { inTurn } from "../in-turn.ts";
import { createChunkReader } from "../output-events.ts";
import { keepSaid, type Said } from "../said.ts";
import { outcomeOfStop, stopReasonOf } from "../stop-outcome.ts";
import { readLines } from "./lines.ts";
import { loadEventParser, type ParseEvent } from "./parse-event.ts";

type ResultEvent = Extract<RunEvent, { type: "result" }>;

export interface CommandExecutorOptions extends CommandPlace {
  name: string;
  /** The program and its own arguments, as a person writes them. */
  command: string;
  can?: Partial<Executor["can"]>;
}

/** A result with as much data as is ever parsed has to fit. */
const maxLineBytes = 48 * 1024 * 1024;

/**
 * A program in any language. The first line of its stdin is the invocation, later ones are `{"stop": reason}`,
 * `{"answer": {request_id, answer}}` and `{"input": {text}}`; each line of its stdout is an event. Its `result`
 * event is the outcome; without one, its exit code.
 */
export function createCommandExecutor(options: CommandExecutorOptions): Executor {
  const can = { resume: false, fork: false, ask: false, input: false, ...options.can };
  return {
    name: options.name,
    can,
    async run(invocation, context) {
      if (invocation.mode !== "start" && !can[invocation.mode])
        return failed("refused", `The executor ${options.name} cannot ${invocation.mode} a session.`);
      const words = commandWords(options.command, options);
      if (!words.ok) return failed("refused", `The executor's command cannot be run: ${words.message}.`);
      try {
        const running = await context.start({
          executable: words.executable,
          arguments: words.arguments,
          workingDirectory: context.dirs.work,
          environment: { DROVER_RUNNER_DIRECTORY: options.runnerDirectory },
        });
        return await converse(running, invocation, context, await loadEventParser());
      } catch (error) {
        if (error instanceof RequestError) return failed("refused", error.message);
        throw error;
      }
    },
  };
}

async function converse(
  running: Running,
  invocation: Invocation,
  context: RunContext,
  parse: ParseEvent,
): Promise<Outcome> {
  const say = (line: object): void =>
    void (running.stdin?.writable && running.stdin.write(`${JSON.stringify(line)}\n`));
  let result: ResultEvent | null = null;
  const said = keepSaid();
  const emit = inTurn(context.emit);
  const onStop = (): void => say({ stop: stopReasonOf(context.signal) });
  context.signal.addEventListener("abort", onStop, { once: true });
  say(invocation);
  const inputs = context.input[Symbol.asyncIterator]();
  void passInputs(inputs, say);

  const onEvent = async (event: RunEvent): Promise<void> => {
    if (event.type === "result") result ??= event;
    else if (event.type === "permission_request") {
      const { request_id } = event;
      void context.ask(event).then((answer) => say({ answer: { request_id, answer } }));
    } else if (event.type === "usage") context.usage(event.usage);
    else if (event.type !== "status") await emit(event);
  };
  const readStdout = async (): Promise<void> => {
    for await (const line of readLines(running.stdout, maxLineBytes)) {
      const event = line.whole ? parseLine(line.text, parse) : `it is longer than ${maxLineBytes} bytes`;
      if (typeof event !== "string") await onEvent(event);
      else
        await emit({
          type: "error",
          code: "bad_line",
          message: `A line of the executor is no event (${event}): ${line.text.slice(0, 200)}`,
        });
    }
  };
  const [ended] = await Promise.all([running.result, readStdout(), readStderr(running.stderr, emit, said)]);
  context.signal.removeEventListener("abort", onStop);
  return outcomeOf(ended, result, said.text());
}

/** Ends with the run's input, which ends with the run. */
async function passInputs(inputs: AsyncIterator<{ text: string }>, say: (line: object) => void): Promise<void> {
  for (let next = await inputs.next(); !next.done; next = await inputs.next()) say({ input: next.value });
}

function parseLine(text: string, parse: ParseEvent): RunEvent | string {
  try {
    return parse(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return "it is not JSON";
    throw error;
  }
}

async function readStderr(stream: Readable | null, emit: RunContext["emit"], said: Said): Promise<void> {
  if (stream === null) return;
  const reader = createChunkReader("stderr");
  for await (const chunk of stream) {
    const bytes = chunk as Uint8Array; // no encoding is set
    said.push(bytes);
    for (const event of reader.push(bytes)) await emit(event);
  }
  for (const event of reader.end()) await emit(event);
}

function outcomeOf(ended: Ended, result: ResultEvent | null, stderr: string): Outcome {
  if (ended.stopped) return outcomeOfStop(ended.stopped, result?.result_text ?? undefined);
  if (result) return outcomeOfResult(result);
  if (!ended.error) return { status: "completed", exit_code: ended.exitCode, text: null };
  const message = ended.error.code === "DROVER-EXE-003" && stderr !== "" ? stderr : ended.error.message;
  return { ...failed(endReason(ended), message), exit_code: ended.exitCode };
}

function outcomeOfResult({ status, reason, error, exit_code, result_text, result_data }: ResultEvent): Outcome {
  const data = result_data === null || result_data === undefined ? {} : { data: result_data };
  switch (status) {
    case "completed":
      return { status, exit_code, text: result_text, ...data };
    case "cancelled":
      return { status, by: "user" };
    case "failed":
      return {
        ...failed(reason ?? "internal", error ?? "The executor gave no reason."),
        exit_code,
        ...(result_text === null ? {} : { text: result_text }),
        ...data,
      };
    default: {
      const unknown: never = status;
      return failed("internal", `The executor ended with an unknown status: ${String(unknown)}.`);
    }
  }
}

function failed(
  reason: Extract<Outcome, { status: "failed" }>["reason"],
  message: string,
): Extract<Outcome, { status: "failed" }> {
  return { status: "failed", reason, message, exit_code: null };
}
