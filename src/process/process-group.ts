import { readdirSync, readFileSync } from "node:fs";

/** Of the plain launchMethod: all that a process group can tell and do. What left the group with setsid escapes it. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch (error) {
    // ESRCH: all gone. EPERM (macOS): only zombies are left.
    if (!isCode(error, "ESRCH") && !isCode(error, "EPERM")) throw error;
  }
}

/** After the leader's exit: kills who is left, waits until they are dead, and says how many they were. */
export async function killLeftoverGroup(leader: number): Promise<number> {
  const count = countLiving(leader);
  // On a busy machine a process that was killed lives until it has its turn.
  for (let restMs = 1; countLiving(leader) > 0 && restMs < longestRestMs; restMs *= 2) {
    signalGroup(leader, "SIGKILL");
    await new Promise((resolve) => setTimeout(resolve, restMs));
  }
  return count;
}

/** Twice that in all: one that hangs in the kernel keeps nobody waiting for longer. */
const longestRestMs = 4096;

function isAlive(leader: number): boolean {
  try {
    process.kill(-leader, 0);
    return true;
  } catch {
    return false;
  }
}

/** Without the dead, who are seen until their parent has reaped them, which some containers' pid 1 never does. */
function countLiving(leader: number): number {
  if (!isAlive(leader)) return 0;
  try {
    return readdirSync("/proc").filter((pid) => /^\d+$/.test(pid) && livesIn(pid, leader)).length;
  } catch {
    return 1; // a host without /proc tells no more
  }
}

function livesIn(pid: string, leader: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // the name in parentheses may itself hold blanks and parentheses: count from behind it
    const [state, , group] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(group) === leader && state !== "Z" && state !== "X";
  } catch {
    return false; // gone meanwhile
  }
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
