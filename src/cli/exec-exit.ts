import { constants } from "node:os";
import type { ExecRecord, ExecRequest } from "../execute/exec.ts";
import { monotonicMs } from "../model/clock.ts";
import type { CommandResult } from "../model/process.ts";
import type { StopReason } from "../model/states.ts";
import { isTerminal, tryWrite, write } from "./io.ts";

/** How long a command on a terminal may take to exit after Ctrl-C before Drover checks whether it received the signal. */
const interruptGraceMs = 2000;

/**
 * Forwards Ctrl-C and termination signals to the command. A second Ctrl-C kills it. `wasInterrupted` returns whether the
 * user pressed Ctrl-C. On a terminal the command receives Ctrl-C as well, so if it then exits, the user wanted that.
 */
export async function withSignals<T>(
  request: ExecRequest,
  work: (signal: AbortSignal, stop: () => void, wasInterrupted: () => boolean) => Promise<T>,
  { quiet = false } = {},
): Promise<T> {
  const abort = new AbortController();
  const hurry = new AbortController();
  request.options.hurry = hurry.signal;
  const stop = (reason: StopReason): void => abort.abort(reason);
  const hasTerminal = request.options.stdin === "inherit" && isTerminal(0);
  let presses = 0;
  process.on("SIGINT", () => {
    presses++;
    if (presses > 1) hurry.abort();
    if (presses > 1 || !hasTerminal) return stop("user");
    if (!quiet) tryWrite(2, "drover: interrupted. Press Ctrl-C again to kill the command.\n");
    setTimeout(() => void stopIfMissed(stop, interruptGraceMs), interruptGraceMs).unref();
  });
  process.on("SIGTERM", () => stop("shutdown"));
  process.on("SIGHUP", () => stop("shutdown"));
  return work(
    abort.signal,
    () => stop("user"),
    () => presses > 0,
  );
}

async function stopIfMissed(stop: (reason: StopReason) => void, agoMs: number): Promise<void> {
  const interruptedAt = monotonicMs() - agoMs;
  const { hasMissedInterrupt } = await import("./missed-interrupt.ts");
  if (hasMissedInterrupt(process.pid, monotonicMs() - interruptedAt)) stop("user");
}

/** Prints the error, and returns the command's exit code, or the documented one if the command has none. */
export function reportExecResult(
  { runId, result }: ExecRecord,
  options: {
    json: boolean;
    quiet: boolean;
    showCommand: string | null;
    closedStream: "stdout" | "stderr" | null;
    redact(text: string): string;
  },
): number {
  if (result.withheld.length > 0 && !options.quiet) {
    write(
      2,
      `drover: not passed to the command: ${result.withheld.join(", ")} (allow them in drover.yaml: execution.environment.allow)\n`,
    );
  }
  const closedPipe = options.closedStream && `The reader of ${options.closedStream} closed the pipe`;
  if (result.error && !options.json && !options.quiet) {
    const message = closedPipe && result.stopped ? `${closedPipe}, so the command was stopped.` : result.error.message;
    const hint = options.showCommand === null ? "" : `  ${options.showCommand} ${runId}\n`;
    write(2, `drover: ${message} [${result.error.code}]\n${hint}`);
  } else if (closedPipe && !options.json && !options.quiet)
    write(2, `drover: ${closedPipe}, but the command had already ended.\n`);
  if (result.leftovers > 0 && !options.quiet) write(2, describeLeftovers(result, options.redact));
  return toExitCode(result);
}

/** Lists the processes that outlived the command and were killed. */
function describeLeftovers(
  { leftovers, killedProcesses = [] }: CommandResult,
  redact: (text: string) => string,
): string {
  const lines = killedProcesses.map(({ pid, commandLine }) => `  ${pid} ${redact(commandLine)}\n`);
  const unnamed = leftovers - killedProcesses.length;
  if (lines.length > 0 && unnamed > 0) lines.push(`  and ${unnamed} more\n`);
  const count = `${leftovers} ${leftovers === 1 ? "process" : "processes"}`;
  return `drover: killed ${count} that outlived the command (--leftovers keep would let them run)\n${lines.join("")}`;
}

function toExitCode({ error, exitCode, signal, stopped }: CommandResult): number {
  switch (error?.code) {
    case undefined:
      return exitCode ?? 0;
    case "DROVER-EXE-001":
      return 127;
    case "DROVER-EXE-005":
    case "DROVER-EXE-006":
      return 126;
    case "DROVER-EXE-002":
    case "DROVER-EXE-004":
    case "DROVER-EXE-009":
      return 124;
    case "DROVER-EXE-003":
      return exitCode ?? (signal === null ? 128 : signalExitCode(signal));
    case "DROVER-EXE-011":
      return stopped === "shutdown" ? 128 + constants.signals.SIGTERM : 130;
    default:
      return 125;
  }
}

/** The exit code that a shell reports for a command killed by this signal. */
export function signalExitCode(signal: string): number {
  const signalNumber = Object.entries(constants.signals).find(([name]) => name === signal)?.[1];
  return 128 + (signalNumber ?? Number(signal.slice("SIG".length)));
}
