import { readdirSync, readFileSync } from "node:fs";
import { isCode } from "./process-group.ts";

export interface Orphan {
  pid: number;
  executionId: string;
}

const variable = "DROVER_EXECUTION_ID=";

/**
 * Processes of executions whose Drover died. A launcher's commands die with it; those started without one
 * do not, and are known by the id in their environment. Empty on a system without /proc.
 */
export function findOrphans(executionIds: Iterable<string>): Orphan[] {
  const wanted = new Set(executionIds);
  if (wanted.size === 0) return [];
  const orphans: Orphan[] = [];
  for (const name of processNames()) {
    const executionId = executionOf(name);
    // not ourselves, where this Drover was started by a command that is now an orphan
    if (executionId !== undefined && wanted.has(executionId) && Number(name) !== process.pid)
      orphans.push({ pid: Number(name), executionId });
  }
  return orphans;
}

/** Kills them, and who they start meanwhile. Returns who was killed; someone else's processes are left. */
export async function killOrphans(executionIds: Iterable<string>): Promise<Orphan[]> {
  const ids = [...executionIds];
  const killed = new Map<number, Orphan>();
  for (let round = 0; round < 50; round += 1) {
    const reached = findOrphans(ids).filter(({ pid }) => kill(pid));
    if (reached.length === 0) break;
    for (const orphan of reached) killed.set(orphan.pid, orphan);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return [...killed.values()];
}

function processNames(): string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return []; // not Linux
  }
}

function executionOf(pid: string): string | undefined {
  try {
    // a zombie's is empty
    const variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    return variables.find((text) => text.startsWith(variable))?.slice(variable.length);
  } catch {
    return undefined; // gone meanwhile, or another user's
  }
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch (error) {
    if (isCode(error, "ESRCH") || isCode(error, "EPERM")) return false;
    throw error;
  }
}
