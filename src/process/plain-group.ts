import { readdirSync, readFileSync } from "node:fs";

/** Of the plain rung: all that a process group can tell and do. What left the group with setsid escapes it. */
export function signalGroup(leader: number, signal: NodeJS.Signals): void {
  try {
    process.kill(-leader, signal);
  } catch (error) {
    // ESRCH: all gone. EPERM (macOS): only zombies are left.
    if (!isCode(error, "ESRCH") && !isCode(error, "EPERM")) throw error;
  }
}

/** After the leader's exit: kills who is left, waits until they are gone, and says how many they were. */
export async function killLeftoverGroup(leader: number): Promise<number> {
  if (!isAlive(leader)) return 0;
  const count = countGroup(leader);
  signalGroup(leader, "SIGKILL");
  // they die at once, but are seen until their new parent has reaped them, which some containers' pid 1 never does
  for (let waited = 0; waited < 100 && isAlive(leader); waited += 1)
    await new Promise((resolve) => setTimeout(resolve, 2));
  return count;
}

function isAlive(leader: number): boolean {
  try {
    process.kill(-leader, 0);
    return true;
  } catch {
    return false;
  }
}

/** At least one: a host without /proc does not tell more. */
function countGroup(leader: number): number {
  let count = 0;
  try {
    for (const pid of readdirSync("/proc")) if (/^\d+$/.test(pid) && groupOf(pid) === leader) count += 1;
  } catch {
    return 1;
  }
  return Math.max(1, count);
}

function groupOf(pid: string): number | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    // the name in parentheses may itself hold blanks and parentheses: count from behind it
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[2]);
  } catch {
    return undefined; // gone meanwhile
  }
}

export function isCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
