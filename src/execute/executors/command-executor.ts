import { RequestError } from "../../model/errors.ts";
import type { ResultEvent, RunEvent } from "../../model/event.ts";
import { findInexactNumber } from "../../model/exact-numbers.ts";
import type { Executor, Invocation, Outcome, RunContext, UserInput } from "../../model/executor.ts";
import type { ProcessEnd, RunningProcess } from "../../model/process.ts";
import { type ResolveOptions, resolveCommand } from "../executions/resolve-command.ts";
import { createFailedOutcome } from "../../model/outcome.ts";
import { toFailureReason } from "../executions/failure-reason.ts";
import { emitOutput } from "../journal/output-events.ts";
import { createStderrExcerpt } from "../executions/stderr-excerpt.ts";
import { undeclaredQuestion } from "../supervise/questions.ts";
import { toStopOutcome, getStopReason } from "../supervise/stop-outcome.ts";
import { defineExecutor, RunFailure } from "../scaffold/define-executor.ts";
import { toFailureOutcome } from "../scaffold/run-failure.ts";
import { readLines } from "./read-lines.ts";
import { type CommandState, openCommandState } from "./command-state.ts";
import { loadLineParser, toParked, type ParseLine, type ProgramLine } from "./program-lines.ts";

export interface CommandExecutorOptions extends ResolveOptions {
  name: string;
  /** The program and its arguments, written as one string. */
  command: string;
  can?: Partial<Executor["can"]>;
}

/** Large enough for a result with the largest data that Drover parses. */
const maxLineBytes = 48 * 1024 * 1024;

/**
 * Runs a program in any language. The first line of its stdin is the invocation, with the saved `session_state` if it
 * continues a session. Later lines are `{"stop": reason}`, `{"answer": {request_id, answer}}`, `{"input": {text}}`,
 * `{"saved": ...}` and `{"over_budget": true}`. Each line of its stdout is an event, `{"type": "save", "state": ...}`
 * or `{"type": "parked", "why": ...}`. The outcome is its `result` event or its `parked` line, or else its exit code.
 */
export function createCommandExecutor(options: CommandExecutorOptions): Executor {
  const { name, can = {} } = options;
  const scaffolded = defineExecutor({
    name,
    can,
    async execute({ invocation, context }) {
      const outcome = await runProgram(options, invocation, context);
      return outcome.status === "completed" ? outcome : { outcome };
    },
  });
  return {
    ...scaffolded,
    run(invocation, context) {
      // Procedural runs skip the scaffold, because they share a directory and keep no files.
      const isProcedural = invocation.agent.type === "procedural" && invocation.mode === "start";
      return isProcedural ? runProgram(options, invocation, context) : scaffolded.run(invocation, context);
    },
  };
}

async function runProgram(
  options: CommandExecutorOptions,
  invocation: Invocation,
  context: RunContext,
): Promise<Outcome> {
  const command = resolveCommand(options.command, options);
  if (!command.ok) return createFailedOutcome("refused", `The executor's command cannot be run: ${command.message}.`);
  try {
    const { name, can = {} } = options;
    const state = openCommandState(can, context);
    const savedState = await state.load();
    const running = await context.start({
      executable: command.executable,
      arguments: command.arguments,
      workingDirectory: context.dirs.work,
      environment: { DROVER_RUNNER_DIRECTORY: options.runnerDirectory },
    });
    return await converse(running, {
      name,
      can,
      invocation,
      context,
      parse: await loadLineParser(),
      state,
      savedState,
    });
  } catch (error) {
    if (error instanceof RequestError) return createFailedOutcome("refused", error.message);
    if (error instanceof RunFailure) return toFailureOutcome(error);
    throw error;
  }
}

interface ConverseOptions {
  name: string;
  can: Partial<Executor["can"]>;
  invocation: Invocation;
  context: RunContext;
  parse: ParseLine;
  state: CommandState;
  savedState: { session_state?: unknown };
}

async function converse(running: RunningProcess, options: ConverseOptions): Promise<Outcome> {
  const { invocation, context, parse } = options;
  const send = (line: object): void =>
    void (running.stdin?.writable && running.stdin.write(`${JSON.stringify(line)}\n`));
  let outcome: Outcome | null = null;
  const excerpt = createStderrExcerpt();
  const { emit } = context;
  const onStop = (): void => send({ stop: getStopReason(context.signal) });
  const onOverBudget = (): void => send({ over_budget: true });
  const { inputs: _sentAsLines, ...first } = invocation;
  send({ ...first, ...options.savedState });
  context.signal.addEventListener("abort", onStop, { once: true });
  context.overBudget.addEventListener("abort", onOverBudget, { once: true });
  const inputs = context.input[Symbol.asyncIterator]();
  void sendInputs(inputs, send);

  const onLine = async (line: ProgramLine): Promise<void> => {
    switch (line.type) {
      case "result":
        outcome ??= toOutcome(line);
        return;
      case "parked":
        outcome ??= toParked(line);
        return;
      case "save":
        return send({ saved: await options.state.save(line.state) });
      case "permission_request":
        if (!options.can.ask) {
          const message = undeclaredQuestion(options.name);
          await emit({ type: "error", code: "undeclared_ask", message });
          return send({ answer: { request_id: line.request_id, answer: { decision: "deny", message } } });
        }
        return void context.ask(line).then((answer) => send({ answer: { request_id: line.request_id, answer } }));
      case "usage":
        return context.usage(line.usage);
      case "status":
        return;
      default:
        await emit(line);
    }
  };
  const readStdout = async (): Promise<void> => {
    for await (const { text, isComplete } of readLines(running.stdout, maxLineBytes)) {
      const line = isComplete ? parseLine(text, parse) : `it is longer than ${maxLineBytes} bytes`;
      if (typeof line === "string") {
        const message = `The executor printed a line that is not an event (${line}): ${text.slice(0, 200)}`;
        await emit({ type: "error", code: "bad_line", message });
        continue;
      }
      const isResult = line.type === "result";
      const inexact = findInexactNumber(text);
      if (inexact) await emit(inexactNumber(inexact, isResult));
      if (inexact === null) await onLine(line);
      else if (isResult) await onLine({ ...line, result_data: null });
      else if (line.type === "save") send({ saved: false });
    }
  };
  const [ended] = await Promise.all([
    running.result,
    readStdout(),
    emitOutput(running.stderr, "stderr", emit, excerpt),
  ]);
  context.signal.removeEventListener("abort", onStop);
  context.overBudget.removeEventListener("abort", onOverBudget);
  return decideOutcome(ended, outcome, excerpt.text());
}

/** Returns when the run ends, because that closes its input. */
async function sendInputs(inputs: AsyncIterator<UserInput>, send: (line: object) => void): Promise<void> {
  for (let next = await inputs.next(); !next.done; next = await inputs.next()) send({ input: next.value });
}

function parseLine(text: string, parse: ParseLine): ProgramLine | string {
  try {
    return parse(JSON.parse(text));
  } catch (error) {
    if (error instanceof SyntaxError) return "it is not JSON";
    throw error;
  }
}

/** Drops only the data of a result, so that the run still ends with the status its program reported. */
function inexactNumber({ path, text }: NonNullable<ReturnType<typeof findInexactNumber>>, isResult: boolean): RunEvent {
  const subject = isResult ? "The result's data" : "An event";
  const message = `${subject} was dropped: JavaScript cannot represent the number ${text.slice(0, 100)} at ${path.join(".")} exactly. Send it as a string.`;
  return { type: "error", code: isResult ? "result_inexact" : "event_inexact", message };
}

function decideOutcome(ended: ProcessEnd, reported: Outcome | null, stderr: string): Outcome {
  if (ended.stopped)
    return toStopOutcome(ended.stopped, reported && "text" in reported ? (reported.text ?? undefined) : undefined);
  if (reported) return reported;
  if (!ended.error) return { status: "completed", exit_code: ended.exitCode, text: null };
  const message = ended.error.code === "DROVER-EXE-003" && stderr !== "" ? stderr : ended.error.message;
  return { ...createFailedOutcome(toFailureReason(ended), message), exit_code: ended.exitCode };
}

function toOutcome({ status, reason, error, exit_code, result_text, result_data }: ResultEvent): Outcome {
  const data = result_data === null || result_data === undefined ? {} : { data: result_data };
  switch (status) {
    case "completed":
      return { status, exit_code, text: result_text, ...data };
    case "cancelled":
      return { status, by: "user" };
    case "failed":
      return {
        ...createFailedOutcome(reason ?? "internal", error ?? "The executor failed without an error message."),
        exit_code,
        ...(result_text === null ? {} : { text: result_text }),
        ...data,
      };
    default: {
      const unknown: never = status;
      return createFailedOutcome("internal", `The executor ended with an unknown status: ${String(unknown)}.`);
    }
  }
}
