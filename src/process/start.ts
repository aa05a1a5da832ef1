import { monotonicMs } from "../model/clock.ts";
import type { CommandFault, ProcessEnd, RunningProcess, StartCommand } from "../model/process.ts";
import type { StopReason } from "../model/states.ts";
import { checkCommand, checkVariables } from "./check-command.ts";
import { buildEnvironment } from "./environment.ts";
import { stoppedFault } from "./faults.ts";
import { launch } from "./launch.ts";
import { createLaunchMethodSelector, type LaunchMethodOptions } from "./launch-method-selector.ts";
import { getStopReason, trackProcess } from "./track-process.ts";

/** Creates a `start` function that remembers which launcher works on this host. */
export function createStart(launchMethodOptions: LaunchMethodOptions = {}): StartCommand {
  const launchMethodSelector = createLaunchMethodSelector(launchMethodOptions);
  return (command, options, signal) => {
    checkCommand(command);
    checkVariables(options.ids, "ids");
    const { environment, withheld } = buildEnvironment({
      options: options.environment,
      parent: options.parentEnvironment ?? process.env,
      variables: command.environment,
      ids: options.ids,
    });
    if (signal.aborted) {
      const reason = getStopReason(signal);
      return createUnstartedProcess(stoppedFault(reason, command), withheld, reason);
    }
    const [startTime, startedAt] = [new Date(), monotonicMs()];
    const launched = launch(launchMethodSelector, command, options, environment);
    if ("fault" in launched) return createUnstartedProcess(launched.fault, withheld, null);
    return trackProcess(launched, {
      command,
      options,
      signal,
      startTime,
      startedAt,
      withheld,
      path: environment["PATH"],
    });
  };
}

// Created on first use, so that the launcher is searched for once per process.
let sharedStart: StartCommand | undefined;
export const start: StartCommand = (command, options, signal) =>
  (sharedStart ??= createStart())(command, options, signal);

function createUnstartedProcess(
  fault: CommandFault,
  withheld: readonly string[],
  stopped: StopReason | null,
): RunningProcess {
  const result = Promise.resolve({ ...createUnstartedEnd(fault), stopped });
  return { pid: undefined, withheld, stdin: null, stdout: null, stderr: null, kill: () => Promise.resolve(), result };
}

/** The result of a command that never started. */
export function createUnstartedEnd(fault: CommandFault): ProcessEnd {
  const now = new Date();
  return {
    exitCode: null,
    signal: null,
    stopped: null,
    startTime: now,
    endTime: now,
    durationMs: 0,
    isolation: null,
    leftovers: 0,
    resources: null,
    error: fault,
  };
}
