import { constants } from "node:os";
import type { ExecRecord, ExecRequest } from "../execute/exec.ts";
import type { CommandResult } from "../model/process.ts";
import type { StopReason } from "../model/states.ts";
import { isTerminal, write } from "./io.ts";

/** Ctrl-C and a request to end reach the command; a second Ctrl-C does not wait for it. */
export async function withSignals<T>(
  request: ExecRequest,
  work: (signal: AbortSignal, stop: () => void) => Promise<T>,
): Promise<T> {
  const abort = new AbortController();
  const hurry = new AbortController();
  request.options.hurry = hurry.signal;
  const stop = (reason: StopReason): void => abort.abort(reason);
  // on a terminal the command has had the Ctrl-C itself, and decides; a second one is meant for us
  let presses = request.options.stdin === "inherit" && isTerminal(0) ? -1 : 0;
  process.on("SIGINT", () => {
    presses++;
    if (presses > 0) stop("user");
    if (presses > 1) hurry.abort();
  });
  process.on("SIGTERM", () => stop("shutdown"));
  process.on("SIGHUP", () => stop("shutdown"));
  return work(abort.signal, () => stop("user"));
}

/** The command's own code, or what design calls for where it has none; says on stderr what happened. */
export function exitCodeOf(
  { runId, result }: ExecRecord,
  show: { json: boolean; quiet: boolean; recorded: boolean },
): number {
  if (result.withheld.length > 0 && !show.quiet) {
    write(
      2,
      `drover: not handed to the command: ${result.withheld.join(", ")} (allow them in drover.yaml: execution.environment.allow)\n`,
    );
  }
  if (result.error && !show.json && !show.quiet) {
    const hint = show.recorded ? `  drover runs show ${runId}\n` : "";
    write(2, `drover: ${result.error.message} [${result.error.code}]\n${hint}`);
  }
  return codeOf(result);
}

function codeOf({ error, exitCode, signal, stopped }: CommandResult): number {
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
      return exitCode ?? 128 + signalNumber(signal);
    case "DROVER-EXE-011":
      return stopped === "shutdown" ? 128 + constants.signals.SIGTERM : 130;
    default:
      return 125;
  }
}

function signalNumber(signal: CommandResult["signal"]): number {
  if (!signal) return 0;
  const known = Object.entries(constants.signals).find(([name]) => name === signal)?.[1];
  return known ?? Number(signal.slice("SIG".length));
}
