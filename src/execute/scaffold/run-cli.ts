import { resolve } from "node:path";
import type { Readable, Writable } from "node:stream";
import type { RunContext } from "../../model/executor.ts";
import type { RunningProcess } from "../../model/process.ts";
import { toFailureReason } from "../executions/failure-reason.ts";
import { readLines } from "../executors/read-lines.ts";
import { emitOutput } from "../journal/output-events.ts";
import { createStderrExcerpt } from "../executions/stderr-excerpt.ts";
import { toStopOutcome } from "../supervise/stop-outcome.ts";
import type { Cli, CliResult } from "./definition.ts";
import { RunFailure } from "./run-failure.ts";

const maxKeptBytes = 1024 * 1024;
const maxLineBytes = 48 * 1024 * 1024;

/** Runs one program and records its output. Throws a RunFailure if it fails. */
export async function runCli(cli: Cli, context: RunContext): Promise<CliResult> {
  const running = await startProgram(cli, context);
  writeStdin(running.stdin, cli.stdin);
  // Any reason will do: a stop of the run itself arrives through the run's signal.
  const stopProgram = (): void => void running.kill("shutdown");
  cli.enough?.addEventListener("abort", stopProgram, { once: true });
  const stdout = createHead(maxKeptBytes);
  const stderr = createHead(maxKeptBytes);
  const excerpt = createStderrExcerpt();
  const { onLine } = cli;
  const outputRead = Promise.all([
    onLine
      ? passLines(running.stdout, stdout, onLine, context)
      : emitOutput(running.stdout, "stdout", context.emit, stdout),
    emitOutput(running.stderr, "stderr", context.emit, stderr, excerpt),
  ]);
  try {
    await outputRead;
  } catch (error) {
    // Nobody reads the program's output any more, so it would block on a full pipe.
    await running.kill("shutdown");
    throw error;
  }
  const ended = await running.result;
  cli.enough?.removeEventListener("abort", stopProgram);
  const result = {
    exitCode: ended.exitCode,
    signal: ended.signal,
    stdout: stdout.text(),
    stderr: stderr.text(),
    ended,
  };
  if (!cli.enough?.aborted || context.signal.aborted) throwIfFailed(result, excerpt.text(), cli);
  return result;
}

async function startProgram(cli: Cli, context: RunContext): Promise<RunningProcess> {
  const [program, ...args] = cli.command;
  const workingDirectory = cli.cwd ?? context.dirs.work;
  try {
    return await context.start({
      // A path is resolved, so that an error names the path that was tried.
      executable: program.includes("/") ? resolve(workingDirectory, program) : program,
      arguments: args,
      workingDirectory,
      ...(cli.env === undefined ? {} : { environment: cli.env }),
      ...(cli.timeoutMs === undefined ? {} : { timeoutMs: cli.timeoutMs }),
    });
  } catch (error) {
    // Compare by name: an executor from a module may have its own copy of the class.
    if (error instanceof Error && error.name === "RequestError")
      throw new RunFailure("refused", error.message, { cause: error });
    throw error;
  }
}

/** Always closes stdin, because some clients wait for the end of their input before they start. */
function writeStdin(stdin: Writable | null, text: string | undefined): void {
  // Ignore a program that exits without reading: its exit code decides.
  stdin?.on("error", () => undefined);
  stdin?.end(text ?? "");
}

function throwIfFailed({ stdout, ended }: CliResult, excerpt: string, { onLine, check = true }: Cli): void {
  const text = onLine || stdout === "" ? {} : { text: stdout };
  if (ended.stopped) {
    const outcome = toStopOutcome(ended.stopped);
    if (outcome.status === "failed") throw new RunFailure(outcome.reason, outcome.message, text);
    throw new RunFailure("internal", "The program was stopped.", text); // The outcome comes from the signal that stopped it.
  }
  if (!ended.error) return;
  const isExit = ended.error.code === "DROVER-EXE-003";
  if (isExit && !check) return;
  throw new RunFailure(toFailureReason(ended), isExit && excerpt !== "" ? excerpt : ended.error.message, {
    exitCode: ended.exitCode,
    ...text,
  });
}

async function passLines(
  stream: Readable | null,
  head: ReturnType<typeof createHead>,
  onLine: (line: string) => void | Promise<void>,
  context: RunContext,
): Promise<void> {
  for await (const { text, isComplete } of readLines(stream, maxLineBytes)) {
    head.push(Buffer.from(`${text}\n`));
    if (isComplete) await onLine(text);
    else
      await context.emit({
        type: "error",
        code: "bad_line",
        message: `Dropped a line of the client's output because it is longer than ${maxLineBytes} bytes. It starts with: ${text.slice(0, 200)}`,
      });
  }
}

/** Keeps the beginning of a stream. Does not split a character. */
function createHead(maxBytes: number): { push(bytes: Uint8Array): void; text(): string } {
  const parts: Uint8Array[] = [];
  let remaining = maxBytes;
  return {
    push(bytes) {
      if (remaining > 0) parts.push(Uint8Array.from(bytes.subarray(0, remaining)));
      remaining -= Math.min(remaining, bytes.length);
    },
    text: () => new TextDecoder().decode(Buffer.concat(parts), { stream: true }),
  };
}
