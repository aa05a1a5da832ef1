import type {
  CaptureOptions,
  Command,
  CommandFault,
  CommandResult,
  Ended,
  StartCommand,
  StartOptions,
} from "../model/process.ts";
import { openCaptures } from "./capture.ts";
import { checkCommand } from "./check.ts";
import { withInitialUsage } from "./disk-usage-watch.ts";
import { endedBeforeStart, start } from "./start.ts";

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
    checkCommand(command); // before creating files for its output
    const startOptions = await withInitialUsage(command, options, signal);
    if ("fault" in startOptions) return withOutput(endedBeforeStart(startOptions.fault), [], nothing, nothing);
    const captures = openCaptures(capture);
    if (!captures.ok) return withOutput(endedBeforeStart(captures.fault), [], nothing, nothing);
    const running = startCommand(command, { ...startOptions, output: outputOf(capture) }, signal);
    let fault: CommandFault | null = null;
    const onFault = (found: CommandFault): void => {
      fault ??= found;
      void running.kill("output_limit");
    };
    const ending = running.result.then((ended) => {
      if (ended.stopped !== null) for (const each of [captures.stdout, captures.stderr]) each.hurry();
      return ended;
    });
    try {
      const [ended, stdout, stderr] = await Promise.all([
        ending,
        captures.stdout.read(running.stdout, onFault),
        captures.stderr.read(running.stderr, onFault),
      ]);
      return withOutput(fault === null ? ended : { ...ended, error: fault }, running.withheld, stdout, stderr);
    } catch (error) {
      // the caller's onOutput threw, so stop the command before passing the error on
      await running.kill("user");
      throw error;
    }
  };
}

function outputOf({ mode }: CaptureOptions): NonNullable<StartOptions["output"]> {
  return mode === "none" || mode === "merged" ? mode : "both";
}

const nothing: CommandResult["stdout"] = {
  head: new Uint8Array(0),
  tail: new Uint8Array(0),
  totalBytes: 0,
  truncated: false,
};

function withOutput(
  ended: Ended,
  withheld: readonly string[],
  stdout: CommandResult["stdout"],
  stderr: CommandResult["stderr"],
): CommandResult {
  return { ...ended, success: ended.error === null, timedOut: ended.stopped === "timeout", withheld, stdout, stderr };
}
