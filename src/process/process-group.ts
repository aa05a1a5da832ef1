import { readdirSync, readFileSync } from "node:fs";

/** Signals a process group, for the launch method `plain`. A process that called setsid is no longer in the group. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch (error) {
    // ESRCH: all processes are gone. EPERM (macOS): only zombies are left.
    if (!hasErrorCode(error, "ESRCH") && !hasErrorCode(error, "EPERM")) throw error;
  }
}

/** Kills the processes left in a group after its leader's exit, waits until they are dead, and returns their number. */
export async function killLeftoverGroup(leader: number): Promise<number> {
  const count = countLiving(leader);
  // On a busy machine a killed process stays alive until it is scheduled.
  for (let pauseMs = 1; countLiving(leader) > 0 && pauseMs < maxPauseMs; pauseMs *= 2) {
    signalGroup(leader, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return count;
}

/** Limits the total wait to about four seconds, because a process may be stuck in the kernel. */
const maxPauseMs = 4096;

function hasMembers(leader: number): boolean {
  try {
    process.kill(-leader, 0);
    return true;
  } catch {
    return false;
  }
}

/** Does not count zombies. They remain if no process reaps them, as in containers whose PID 1 is not an init. */
function countLiving(leader: number): number {
  if (!hasMembers(leader)) return 0;
  try {
    return readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && isLivingMember(pid, leader)).length;
  } catch {
    return 1; // Without /proc the number is unknown.
  }
}

function isLivingMember(pid: string, leader: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // The name in parentheses may itself contain spaces and parentheses, so parse after the last one.
    const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(group) === leader && state !== "Z" && state !== "X";
  } catch {
    return false; // The process is already gone.
  }
}

export function hasErrorCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
