import type { Command, CommandFault, ProcessEnd, Isolation, Limits } from "../model/process.ts";
import type { StopReason } from "../model/states.ts";
import {
  cannotStart,
  directoryReplaced,
  execRefused,
  isolationMissing,
  limitExceeded,
  limitMissing,
  processFailed,
  stoppedFault,
} from "./faults.ts";
import { toErrnoName, toSignalName, toSignalNumber } from "./signals.ts";
import type { LaunchedProcess } from "./launch.ts";
import { matchesExit, readStatusFile, type LauncherStatus } from "./launcher-status.ts";

export interface Evidence {
  launched: LaunchedProcess;
  command: Command;
  path: string | undefined;
  /** The exit as Node reports it. The launcher's report takes precedence: Node reports a realtime signal as exit code 0. */
  exit: { code: number | null; signal: NodeJS.Signals | null };
  spawnError: string | null;
  stopped: StopReason | null;
  startTime: Date;
  endTime: Date;
  durationMs: number;
  leftovers: number;
  /** The fault found by the disk usage watch. */
  diskFault: CommandFault | null;
}

/** Determines how a command ended from all available evidence. Reads and closes the status file. */
export function determineEnd(evidence: Evidence): ProcessEnd {
  const { launched, stopped, startTime, endTime, durationMs } = evidence;
  const status = readStatus(evidence);
  const startFault = findStartFault(evidence, status);
  const exit = startFault === null ? readExit(evidence, status) : { exitCode: null, signal: null };
  return {
    exitCode: exit.exitCode,
    signal: exit.signal,
    stopped,
    startTime,
    endTime,
    durationMs,
    isolation: startFault === null ? findAppliedLevel(launched, status) : null,
    leftovers: status.end?.leftovers ?? evidence.leftovers,
    killedProcesses: status.end?.leftovers ? status.killedProcesses : [],
    resources:
      status.end === null
        ? null
        : { userMs: status.end.userMs, systemMs: status.end.systemMs, maxRssKb: status.end.maxRssKb },
    error: startFault ?? addUnkillable(findFault(exit, evidence, status), status.unkillable),
  };
}

/** In a sandbox the inner launcher reports about the command, and the outer one about bwrap. */
interface Status extends LauncherStatus {
  /** Whether a launcher started the command, and not only bwrap. */
  isStarted: boolean;
}

function readStatus({ launched, exit }: Evidence): Status {
  const reported = readStatusFile(launched.statusFile);
  const isForged = reported.end !== null && !matchesExit(reported.end, exit);
  const outer = isForged ? { ...reported, end: null } : reported;
  if (launched.level !== "sandbox") return { ...outer, isStarted: true };
  const inner = readStatusFile(launched.innerStatusFile);
  return {
    level: outer.level,
    // If the outer launcher was killed, the inner one's report of a normal end is not reliable.
    end: outer.end === null ? null : inner.end,
    failure: inner.failure ?? outer.failure,
    killedProcesses: inner.killedProcesses,
    unkillable: inner.unkillable + outer.unkillable,
    isStarted: inner.level !== null,
  };
}

function readExit({ exit, launched }: Evidence, { end }: Status): Pick<ProcessEnd, "exitCode" | "signal"> {
  // The inner launcher was killed, and the command with it.
  if (launched.level === "sandbox" && end === null) return { exitCode: null, signal: "SIGKILL" };
  if (end === null) return { exitCode: exit.code, signal: exit.signal };
  const number = end.wstatus & 0x7f;
  return number === 0
    ? { exitCode: (end.wstatus >> 8) & 0xff, signal: null }
    : { exitCode: null, signal: toSignalName(number) };
}

/** Returns a fault if the command itself never ran. */
function findStartFault(
  { launched, command, path, spawnError, stopped }: Evidence,
  status: Status,
): CommandFault | null {
  if (spawnError !== null) return execRefused(spawnError, command, path);
  if (status.failure !== null) {
    // Stopped during setup, which is not a fault of the host.
    if (stopped !== null && status.failure.step !== "exec") return stoppedFault(stopped, command);
    return toLauncherFault(status.failure, launched, command, path);
  }
  if (launched.level === "sandbox" && stopped === null && !status.isStarted) {
    return isolationMissing("sandbox", "bwrap could not create it; see its message on stderr");
  }
  return null;
}

function toLauncherFault(
  { step, errno }: { step: string; errno: number },
  { level }: LaunchedProcess,
  command: Command,
  path: string | undefined,
): CommandFault {
  const name = toErrnoName(errno);
  switch (step) {
    case "exec":
      return execRefused(name, command, path);
    case "rlimit":
      return limitMissing(
        guessRlimit(command.limits),
        `the system returned ${name}; Drover cannot raise its own hard limit`,
      );
    case "cgroup":
      return limitMissing(
        command.limits?.memoryBytes === undefined ? "processes" : "memoryBytes",
        `the command could not be moved into its cgroup (${name})`,
      );
    case "readonly":
      return limitMissing(
        command.limits?.memoryBytes === undefined ? "processes" : "memoryBytes",
        `the command could leave its cgroup, because the system refused to make cgroups read-only (${name})`,
      );
    case "hide":
      return isolationMissing(level, `Drover's record could not be hidden from the command (${name})`);
    case "directory":
      return directoryReplaced(command.workingDirectory ?? ".");
    case "bind":
      return isolationMissing(level, `the working directory could not be bound (${name})`);
    case "unshare":
    case "map":
    case "init":
      return isolationMissing(level, `the kernel refused a PID namespace (${step}: ${name})`);
    default:
      return cannotStart(`the launcher failed at ${step} (${name})`);
  }
}

function guessRlimit(limits: Limits | undefined): keyof Limits {
  if (limits?.openFiles !== undefined) return "openFiles";
  return limits?.cpuSeconds !== undefined ? "cpuSeconds" : "fileSizeBytes";
}

function findAppliedLevel({ level, containment }: LaunchedProcess, status: LauncherStatus): Isolation | null {
  if (level === "sandbox" || level === "none") return level;
  if (containment !== "launcher") return containment === "group" ? "group" : "none";
  if (status.level === null && status.end === null) return null; // The launcher was killed before it started the command.
  return status.level?.startsWith("pid") ? "pid" : "group";
}

function findFault(
  exit: Pick<ProcessEnd, "exitCode" | "signal">,
  { launched: { cgroup }, stopped, command, diskFault }: Evidence,
  { end }: LauncherStatus,
): CommandFault | null {
  if (diskFault !== null) return diskFault;
  // A limit can explain a timeout (a contained fork bomb), but not a requested stop.
  if (stopped === null || stopped === "timeout") {
    const usedMs = end === null || stopped !== null ? 0 : end.userMs + end.systemMs;
    const limit = cgroup?.findExceeded() ?? findExceededRlimit(exit, command.limits, usedMs);
    if (limit !== null) return limitExceeded(limit, command.limits?.[limit]);
  }
  if (stopped !== null) return stoppedFault(stopped, command);
  return exit.exitCode === 0 ? null : processFailed(exit);
}

/** The message states that all processes were killed, so it must mention those that were not. */
function addUnkillable(fault: CommandFault | null, count: number): CommandFault | null {
  if (fault === null || count === 0) return fault;
  return {
    ...fault,
    message: `${fault.message} ${count} of its processes run as another user and could not be killed.`,
  };
}

/**
 * Detects an exceeded rlimit by the kernel's signal, which a shell reports as 128 + n. A command that ignores SIGXCPU gets
 * SIGKILL a second later, so for SIGKILL the used CPU time decides. `usedMs` is 0 if Drover killed the command.
 */
function findExceededRlimit(
  { exitCode, signal }: Pick<ProcessEnd, "exitCode" | "signal">,
  limits: Limits | undefined,
  usedMs: number,
): keyof Limits | null {
  const wasKilledBy = (name: NodeJS.Signals): boolean => signal === name || exitCode === 128 + toSignalNumber(name);
  if (limits?.cpuSeconds !== undefined) {
    if (wasKilledBy("SIGXCPU")) return "cpuSeconds";
    if (wasKilledBy("SIGKILL") && usedMs >= limits.cpuSeconds * 1000) return "cpuSeconds";
  }
  if (limits?.fileSizeBytes !== undefined && wasKilledBy("SIGXFSZ")) return "fileSizeBytes";
  return null;
}
