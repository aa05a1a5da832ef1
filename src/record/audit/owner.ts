import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import type { ExecutionStart } from "../../model/execution.ts";

export type Owner = ExecutionStart["owner"];

/**
 * This process, so that a later one can tell whether it still lives. Pids come back: `start` is the
 * boot and the moment of the process's start within it. Where there is no /proc it is empty, and the
 * pid alone must do.
 */
export function currentOwner(): Owner {
  return { pid: process.pid, start: startOf(process.pid) ?? "", host: hostname() };
}

/** Another host cannot be looked at from here: its processes count as alive. */
export function ownerIsAlive(owner: Owner): boolean {
  if (owner.host !== hostname()) return true;
  if (owner.start === "") return exists(owner.pid);
  return startOf(owner.pid) === owner.start;
}

function startOf(pid: number): string | null {
  const boot = readOrNull("/proc/sys/kernel/random/boot_id");
  const stat = readOrNull(`/proc/${pid}/stat`);
  if (boot === null || stat === null) return null;
  // The name in parentheses may hold anything, spaces and parentheses too; field 22 is the start time.
  const ticks = stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19];
  return `${boot.trim()}:${ticks}`;
}

function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (fault) {
    // ESRCH: it ended while we read. Anything else is worth knowing.
    const code: unknown = fault instanceof Error ? Reflect.get(fault, "code") : null;
    if (code === "ENOENT" || code === "ESRCH") return null;
    throw fault;
  }
}

function exists(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (fault) {
    // EPERM: it is there and belongs to someone else.
    return fault instanceof Error && Reflect.get(fault, "code") === "EPERM";
  }
}
