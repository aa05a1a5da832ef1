import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import type { ExecutionStart } from "../../model/execution.ts";

export type Owner = ExecutionStart["owner"];

/**
 * This process, so that a later one can tell whether it still lives. Pids come back, and mean something
 * else in each process namespace: `start` is the boot, the namespace and the moment of the process's start.
 * Where there is no /proc it is empty, and the pid alone must do.
 */
export function currentOwner(): Owner {
  return { pid: process.pid, start: startOf("self") ?? "", host: hostname() };
}

/**
 * What cannot be looked at from here counts as alive: another host, and, from inside a namespace of our
 * own making, whatever runs outside it.
 */
export function ownerIsAlive(owner: Owner): boolean {
  if (owner.host !== hostname()) return true;
  if (owner.start === "") return exists(owner.pid);
  const own = startOf("self");
  if (own === null) return true;
  if (bootOf(own) !== bootOf(owner.start)) return false;
  if (namespaceOf(own) === namespaceOf(owner.start)) return startOf(String(owner.pid)) === owner.start;
  return isInsideLauncher() || lives(owner.start);
}

/** In a namespace below ours it has another pid here, but began at the same moment. */
function lives(start: string): boolean {
  return readdirSync("/proc").some((name) => /^\d+$/.test(name) && startOf(name) === start);
}

/** Pid 1 of a namespace that Drover made is its launcher, which is told so by its `-p`. */
function isInsideLauncher(): boolean {
  return /(?:^|\/)(?:drover-init-[^\0/]+|init\.pl)\0/.test(readOrNull("/proc/1/cmdline") ?? "");
}

function startOf(pid: string): string | null {
  const boot = readOrNull("/proc/sys/kernel/random/boot_id");
  const stat = readOrNull(`/proc/${pid}/stat`);
  const namespace = readLinkOrNull(`/proc/${pid}/ns/pid`);
  if (boot === null || stat === null || namespace === null) return null;
  // The name in parentheses may hold anything, spaces and parentheses too; field 3 is the state, 22 the start time.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie has ended; its parent, as pid 1 in many containers, may never reap it.
  if (fields[0] === "Z" || fields[0] === "X") return null;
  return [boot.trim(), namespace, fields[19]].join(" ");
}

const bootOf = (start: string): string | undefined => start.split(" ")[0];
const namespaceOf = (start: string): string | undefined => start.split(" ")[1];

function readOrNull(file: string): string | null {
  return orNull(() => readFileSync(file, "utf8"));
}

function readLinkOrNull(file: string): string | null {
  return orNull(() => readlinkSync(file));
}

function orNull<T>(read: () => T): T | null {
  try {
    return read();
  } catch (fault) {
    // ESRCH: it ended while we read. EACCES: another user's, so not one of ours. Anything else is worth knowing.
    const code: unknown = fault instanceof Error ? Reflect.get(fault, "code") : null;
    if (code === "ENOENT" || code === "ESRCH" || code === "EACCES") return null;
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
