import { readdirSync, readFileSync } from "node:fs";
import { hasErrorCode } from "./process-group.ts";

export interface Orphan {
  pid: number;
  executionId: string;
}

const idPrefix = "DROVER_EXECUTION_ID=";

/**
 * Finds processes of executions whose Drover process died. Commands under a launcher die with it. Commands started without one
 * survive and are recognized by the execution id in their environment. Finds nothing on a system without /proc.
 */
export function findOrphans(executionIds: Iterable<string>): Orphan[] {
  const ids = new Set(executionIds);
  if (ids.size === 0) return [];
  const orphans: Orphan[] = [];
  for (const pid of listPids()) {
    const executionId = readExecutionId(pid);
    // Skip this process, which may itself have been started by an orphan.
    if (executionId !== undefined && ids.has(executionId) && Number(pid) !== process.pid)
      orphans.push({ pid: Number(pid), executionId });
  }
  return orphans;
}

/** Kills orphans and the processes that they still start. Returns the killed processes. Ignores other users' processes. */
export async function killOrphans(executionIds: Iterable<string>): Promise<Orphan[]> {
  const ids = [...executionIds];
  const killed = new Map<number, Orphan>();
  for (let round = 0; round < 50; round += 1) {
    const signalled = findOrphans(ids).filter(({ pid }) => kill(pid));
    if (signalled.length === 0) break;
    for (const orphan of signalled) killed.set(orphan.pid, orphan);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  return [...killed.values()];
}

function listPids(): string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch {
    return []; // The system is not Linux.
  }
}

function readExecutionId(pid: string): string | undefined {
  try {
    // The file is empty for a zombie.
    const variables = readFileSync(`/proc/${pid}/environ`, "utf8").split("\0");
    return variables.find((text) => text.startsWith(idPrefix))?.slice(idPrefix.length);
  } catch {
    return undefined; // The process is already gone, or belongs to another user.
  }
}

function kill(pid: number): boolean {
  try {
    process.kill(pid, "SIGKILL");
    return true;
  } catch (error) {
    if (hasErrorCode(error, "ESRCH") || hasErrorCode(error, "EPERM")) return false;
    throw error;
  }
}
