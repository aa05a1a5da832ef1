import type {
  CaptureOptions,
  Command,
  CommandFault,
  CommandResult,
  ProcessEnd,
  StartCommand,
  StartOptions,
} from "../model/process.ts";
import { openCaptures } from "./capture.ts";
import { checkCommand } from "./check-command.ts";
import { addInitialUsage } from "./disk-usage-watch.ts";
import { createUnstartedEnd, start } from "./start.ts";

export type ExecuteOptions = Omit<StartOptions, "output"> & { capture: CaptureOptions };
export type ExecuteCommand = (
  command: Command,
  options: ExecuteOptions,
  signal?: AbortSignal,
) => Promise<CommandResult>;

export const execute: ExecuteCommand = createExecute(start);

/** Starts a command and captures its output. Rejects only for an invalid request; every other failure is a result. */
export function createExecute(startCommand: StartCommand): ExecuteCommand {
  return async (command, { capture, ...options }, signal = new AbortController().signal) => {
    // Check the command before creating files for its output.
    checkCommand(command);
    const startOptions = await addInitialUsage(command, options, signal);
    if ("fault" in startOptions) return addOutput(createUnstartedEnd(startOptions.fault), [], noOutput, noOutput);
    const captures = openCaptures(capture);
    if (!captures.ok) return addOutput(createUnstartedEnd(captures.fault), [], noOutput, noOutput);
    const running = startCommand(command, { ...startOptions, output: toOutputMode(capture) }, signal);
    let fault: CommandFault | null = null;
    const onFault = (newFault: CommandFault): void => {
      fault ??= newFault;
      void running.kill("output_limit");
    };
    const ended = running.result.then((result) => {
      if (result.stopped !== null) for (const stream of [captures.stdout, captures.stderr]) stream.stopWaiting();
      return result;
    });
    try {
      const [result, stdout, stderr] = await Promise.all([
        ended,
        captures.stdout.read(running.stdout, onFault),
        captures.stderr.read(running.stderr, onFault),
      ]);
      return addOutput(fault === null ? result : { ...result, error: fault }, running.withheld, stdout, stderr);
    } catch (error) {
      // The caller's onOutput threw, so stop the command before passing the error on.
      await running.kill("user");
      throw error;
    }
  };
}

function toOutputMode({ mode }: CaptureOptions): NonNullable<StartOptions["output"]> {
  return mode === "none" || mode === "merged" ? mode : "both";
}

const noOutput: CommandResult["stdout"] = {
  head: new Uint8Array(0),
  tail: new Uint8Array(0),
  totalBytes: 0,
  truncated: false,
};

function addOutput(
  ended: ProcessEnd,
  withheld: readonly string[],
  stdout: CommandResult["stdout"],
  stderr: CommandResult["stderr"],
): CommandResult {
  return { ...ended, success: ended.error === null, timedOut: ended.stopped === "timeout", withheld, stdout, stderr };
}
