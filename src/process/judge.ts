import type { Command, CommandFault, Ended, Isolation, Limits } from "../model/process.ts";
import type { StopReason } from "../model/states.ts";
import {
  cannotStart,
  execRefused,
  isolationMissing,
  limitExceeded,
  limitMissing,
  processFailed,
  stoppedBy,
} from "./faults.ts";
import { errnoName, signalName, signalNumber } from "./signals.ts";
import type { Launched } from "./launch.ts";
import { takeStatus, type LauncherStatus } from "./status.ts";

export interface Evidence {
  launched: Launched;
  command: Command;
  path: string | undefined;
  /** Node's word. The launcher's counts more: Node reports a realtime signal as exit code 0. */
  exit: { code: number | null; signal: NodeJS.Signals | null };
  spawnError: string | null;
  stopped: StopReason | null;
  startTime: Date;
  endTime: Date;
  durationMs: number;
  leftovers: number;
}

/** What happened, from all that is known after the end. Reads the status file once, and closes it. */
export function judgeEnd(evidence: Evidence): Ended {
  const { launched, command, stopped, startTime, endTime, durationMs } = evidence;
  const status = takeStatus(launched.statusFile);
  const refusal = refusalIn(evidence, status);
  const how = refusal === null ? howItEnded(evidence, status) : { exitCode: null, signal: null };
  return {
    exitCode: how.exitCode,
    signal: how.signal,
    stopped,
    startTime,
    endTime,
    durationMs,
    isolation: refusal === null ? appliedLevel(launched, status) : null,
    leftovers: status.end?.leftovers ?? evidence.leftovers,
    resources:
      status.end === null
        ? null
        : { userMs: status.end.userMs, systemMs: status.end.systemMs, maxRssKb: status.end.maxRssKb },
    error: refusal ?? withUnkillable(faultOf(how, stopped, launched, command), status.unkillable),
  };
}

function howItEnded({ exit, launched }: Evidence, { end, ends }: LauncherStatus): Pick<Ended, "exitCode" | "signal"> {
  // the outer launcher alone speaks of bwrap; the inner one and the command were killed
  if (launched.level === "sandbox" && ends < 2) return { exitCode: null, signal: "SIGKILL" };
  if (end === null) return { exitCode: exit.code, signal: exit.signal };
  const number = end.wstatus & 0x7f;
  return number === 0
    ? { exitCode: (end.wstatus >> 8) & 0xff, signal: null }
    : { exitCode: null, signal: signalName(number) };
}

/** Not null where the command itself never ran. */
function refusalIn(
  { launched, command, path, spawnError, stopped }: Evidence,
  status: LauncherStatus,
): CommandFault | null {
  if (spawnError !== null) return execRefused(spawnError, command, path);
  if (status.failure !== null) {
    // killed while it was being set up, which is no fault of the host
    if (stopped !== null && status.failure.step !== "exec") return stoppedBy(stopped, command);
    return launcherFailure(status.failure, launched, command, path);
  }
  if (launched.level === "sandbox" && stopped === null && status.levels.length < 2) {
    return isolationMissing("sandbox", "bwrap could not build it; what it said is on stderr");
  }
  return null;
}

function launcherFailure(
  { step, errno }: { step: string; errno: number },
  { level }: Launched,
  command: Command,
  path: string | undefined,
): CommandFault {
  const name = errnoName(errno);
  switch (step) {
    case "exec":
      return execRefused(name, command, path);
    case "rlimit":
      return limitMissing(
        firstRlimit(command.limits),
        `the system answered ${name}; a hard limit that Drover itself has cannot be raised`,
      );
    case "cgroup":
      return limitMissing(
        command.limits?.memoryBytes === undefined ? "processes" : "memoryBytes",
        `the command could not be moved into its cgroup (${name})`,
      );
    case "unshare":
    case "map":
    case "init":
      return isolationMissing(level, `the kernel refused a PID namespace (${step}: ${name})`);
    default:
      return cannotStart(`the launcher failed at ${step} (${name})`);
  }
}

function firstRlimit(limits: Limits | undefined): keyof Limits {
  if (limits?.openFiles !== undefined) return "openFiles";
  return limits?.cpuSeconds !== undefined ? "cpuSeconds" : "fileSizeBytes";
}

function appliedLevel({ level, through }: Launched, status: LauncherStatus): Isolation | null {
  if (level === "sandbox" || level === "none") return level;
  if (through !== "launcher") return through === "group" ? "group" : "none";
  const said = status.levels[0];
  if (said === undefined && status.end === null) return null; // killed before it started anything
  return said?.startsWith("pid") ? "pid" : "group";
}

function faultOf(
  how: Pick<Ended, "exitCode" | "signal">,
  stopped: StopReason | null,
  { cgroup }: Launched,
  command: Command,
): CommandFault | null {
  // a limit explains a timeout (a fork bomb that was held), but not a stop that someone asked for
  if (stopped === null || stopped === "timeout") {
    const limit = cgroup?.exceeded() ?? rlimitBehind(how, command.limits);
    if (limit !== null) return limitExceeded(limit, command.limits?.[limit]);
  }
  if (stopped !== null) return stoppedBy(stopped, command);
  return how.exitCode === 0 ? null : processFailed(how);
}

/** The fault says that all was ended, so it has to say where that is not so. */
function withUnkillable(fault: CommandFault | null, count: number): CommandFault | null {
  if (fault === null || count === 0) return fault;
  return {
    ...fault,
    message: `${fault.message} ${count} of its processes run as another user and could not be ended.`,
  };
}

/** By the signal that the kernel sends for it, which a shell passes on as 128 + n. */
function rlimitBehind(
  { exitCode, signal }: Pick<Ended, "exitCode" | "signal">,
  limits: Limits | undefined,
): keyof Limits | null {
  const endedBy = (name: NodeJS.Signals): boolean => signal === name || exitCode === 128 + signalNumber(name);
  if (limits?.cpuSeconds !== undefined && endedBy("SIGXCPU")) return "cpuSeconds";
  if (limits?.fileSizeBytes !== undefined && endedBy("SIGXFSZ")) return "fileSizeBytes";
  return null;
}
