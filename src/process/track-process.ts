import type { ChildProcess } from "node:child_process";
import { setMaxListeners } from "node:events";
import { monotonicMs } from "../model/clock.ts";
import type { Command, CommandFault, ProcessEnd, RunningProcess, StartOptions } from "../model/process.ts";
import { stopReasons, type StopReason } from "../model/states.ts";
import { endOpenPipes } from "./end-open-pipes.ts";
import { watchCommandDiskUsage } from "./disk-usage-watch.ts";
import { determineEnd } from "./determine-end.ts";
import type { LaunchedProcess } from "./launch.ts";
import { killLeftoverGroup, signalGroup } from "./process-group.ts";
import { setLongTimeout } from "./set-long-timeout.ts";

/** The default time between SIGTERM and SIGKILL, in milliseconds. */
export const defaultGraceMs = 2000;

export interface TrackOptions {
  command: Command;
  options: StartOptions;
  signal: AbortSignal;
  startTime: Date;
  /** The same moment on the monotonic clock. */
  startedAt: number;
  withheld: readonly string[];
  path: string | undefined;
}

/** Follows a process from the spawn to its result. Exit, timeout, cancellation and disk limits race only here. */
export function trackProcess(
  launched: LaunchedProcess,
  { command, options, signal, startTime, startedAt, withheld, path }: TrackOptions,
): RunningProcess {
  const { child, containment } = launched;
  const pipes = [child.stdout, child.stderr].filter((pipe) => pipe !== null);
  let stopped: StopReason | null = null;
  let hasExited = false;
  let diskFault: CommandFault | null = null;
  let cancelTimeout: (() => void) | undefined;
  let cancelGrace: (() => void) | undefined;
  let stopDraining: (() => void) | undefined;

  const result = new Promise<ProcessEnd>((resolve) => {
    let isSettling = false;
    let leftovers: Promise<number> | number = 0;
    let endTime = startTime;
    let durationMs = 0;
    let exit: { code: number | null; signal: NodeJS.Signals | null } = { code: null, signal: null };
    const settle = async (spawnError: string | null): Promise<void> => {
      if (isSettling) return;
      isSettling = true;
      cancelAll();
      if (stopped === null && spawnError === null) diskFault = (await watch?.finalCheck(signal)) ?? null;
      const ended = determineEnd({
        launched,
        command,
        path,
        exit,
        spawnError,
        stopped,
        startTime,
        endTime,
        durationMs,
        leftovers: await leftovers,
        diskFault,
      });
      if (launched.cgroup !== null) await launched.cgroup.remove();
      resolve(ended);
    };
    const recordEnd = (): void => {
      // endTime - startTime equals durationMs, even if the clock is set during the run.
      durationMs = Math.round(monotonicMs() - startedAt);
      endTime = new Date(startTime.getTime() + durationMs);
    };
    child.once("error", (error: NodeJS.ErrnoException) => {
      // An error of a running child, such as a signal that could not be sent, does not mean that it ended.
      if (child.pid !== undefined) return;
      recordEnd();
      void settle(error.code ?? "EIO");
    });
    child.once("exit", (code, exitSignal) => {
      hasExited = true;
      exit = { code, signal: exitSignal };
      recordEnd();
      cancelTimeout?.();
      cancelGrace?.();
      watch?.stop();
      if (containment === "group" && options.leftovers !== "keep") leftovers = killLeftoverGroup(child.pid!);
      stopDraining = endOpenPipes(
        pipes,
        options.drainMs ?? 200,
        () => stopped !== null,
        () => void settle(null),
      );
    });
    child.once("close", () => void settle(null));
  });

  const kill = async (reason: StopReason): Promise<void> => {
    if (stopped === null && !hasExited && child.pid !== undefined) {
      stopped = reason;
      sendSignal(child, containment, "SIGTERM");
      cancelGrace = setLongTimeout(options.graceMs ?? defaultGraceMs, () => sendKill(child, containment));
      if (options.hurry?.aborted) onHurry();
    }
    await result;
  };
  const onAbort = (): void => void kill(getStopReason(signal));
  const onHurry = (): void => {
    if (stopped !== null && !hasExited) sendKill(child, containment);
  };
  const watch = watchCommandDiskUsage(command, options, (fault) => {
    if (stopped !== null || hasExited) return;
    diskFault = fault;
    void kill("disk_limit");
  });
  const cancelAll = (): void => {
    watch?.stop();
    signal.removeEventListener("abort", onAbort);
    options.hurry?.removeEventListener("abort", onHurry);
    cancelTimeout?.();
    cancelGrace?.();
    stopDraining?.();
  };
  // Many commands may share one signal, so many listeners are not a leak.
  setMaxListeners(0, signal);
  signal.addEventListener("abort", onAbort, { once: true });
  options.hurry?.addEventListener("abort", onHurry, { once: true });
  if (command.timeoutMs !== undefined) {
    // Let an exit that is already queued in the event loop go first.
    cancelTimeout = setLongTimeout(command.timeoutMs, () => setImmediate(() => void kill("timeout")));
  }
  feedStdin(child, options.stdin);
  // Readers see a broken pipe as the end of output; without a reader it must not crash this process.
  for (const pipe of pipes) pipe.on("error", () => undefined);
  return {
    pid: child.pid,
    withheld,
    stdin: options.stdin === "pipe" ? child.stdin : null,
    stdout: child.stdout,
    stderr: child.stderr,
    kill,
    result,
  };
}

/** Does not kill the launcher itself: on SIGPWR it kills all its descendants and then exits. */
function sendKill(child: ChildProcess, containment: LaunchedProcess["containment"]): void {
  sendSignal(child, containment, containment === "launcher" ? "SIGPWR" : "SIGKILL");
}

/** Also sends SIGCONT, because a stopped process handles signals only when it continues. */
function sendSignal(child: ChildProcess, containment: LaunchedProcess["containment"], signal: NodeJS.Signals): void {
  for (const name of [signal, "SIGCONT"] as const) {
    if (containment === "group") signalGroup(child.pid!, name);
    else child.kill(name);
  }
}

function feedStdin(child: ChildProcess, stdin: StartOptions["stdin"]): void {
  if (child.stdin === null) return;
  // A command may exit or close stdin without reading everything; its exit code shows whether that was an error.
  child.stdin.on("error", () => undefined);
  if (stdin !== "pipe") child.stdin.end(stdin);
}

/** Returns the signal's reason if it is a StopReason, otherwise `user`. */
export function getStopReason(signal: AbortSignal): StopReason {
  return stopReasons.find((reason) => reason === signal.reason) ?? "user";
}
