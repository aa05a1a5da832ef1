import type { CaptureOptions, Command, CommandFault, CommandResult, Ended, StartCommand, StartOptions } from "../model/process.ts";
import { openCaptures, type OpenedCaptures } from "./capture.ts";
import { start } from "./start.ts";

export type ExecuteOptions = Omit<StartOptions, "output"> & { capture: CaptureOptions };
export type ExecuteCommand = (command: Command, options: ExecuteOptions, signal?: AbortSignal) => Promise<CommandResult>;

export const execute: ExecuteCommand = createExecute(start);

/** start, and what it wrote. Rejects for a bad request only; every other end is a result. */
export function createExecute(startCommand: StartCommand): ExecuteCommand {
  return async (command, { capture, ...options }, signal = new AbortController().signal) => {
    const captures = openCaptures(capture);
    const output = capture.mode === "none" || capture.mode === "merged" ? capture.mode : "both";
    // where the output has no place to go, nothing is started: an aborted signal says so in the same way
    const running = startCommand(command, { ...options, output }, captures.ok ? signal : AbortSignal.abort("output_limit"));
    if (!captures.ok) return withOutput({ ...(await running.result), stopped: null, error: captures.fault }, nothing, nothing);
    let fault: CommandFault | null = null;
    const onFault = (found: CommandFault): void => {
      if (fault !== null) return;
      fault = found;
      void running.kill("output_limit");
    };
    const [ended, stdout, stderr] = await Promise.all([
      running.result,
      captures.stdout.read(running.stdout, onFault),
      captures.stderr.read(running.stderr, onFault),
    ]);
    return withOutput(fault === null ? ended : { ...ended, error: fault }, stdout, stderr);
  };
}

const nothing: CommandResult["stdout"] = { head: new Uint8Array(0), tail: new Uint8Array(0), totalBytes: 0, truncated: false };

function withOutput(ended: Ended, stdout: CommandResult["stdout"], stderr: CommandResult["stderr"]): CommandResult {
  return { ...ended, success: ended.error === null, timedOut: ended.stopped === "timeout", stdout, stderr };
}
