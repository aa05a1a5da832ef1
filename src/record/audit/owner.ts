import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";
import type { ExecutionStart } from "../../model/execution.ts";

export type Owner = ExecutionStart["owner"];

/**
 * Identifies this process, so that a later one can tell whether it is still alive. Pids are reused and differ between
 * process namespaces, so `start` combines the boot id, the namespace and the start time. Without /proc it is empty and only
 * the pid counts.
 */
export function getCurrentOwner(): Owner {
  return { pid: process.pid, start: readStart("self") ?? "", host: hostname() };
}

/**
 * Assumes that an owner is alive if it cannot be checked from here: on another host, or outside of a namespace that Drover
 * created.
 */
export function isOwnerAlive(owner: Owner): boolean {
  if (owner.host !== hostname()) return true;
  if (owner.start === "") return isPidAlive(owner.pid);
  const ownStart = readStart("self");
  if (ownStart === null) return true;
  if (parseBootId(ownStart) !== parseBootId(owner.start)) return false;
  if (parseNamespace(ownStart) === parseNamespace(owner.start)) return readStart(String(owner.pid)) === owner.start;
  return isInsideLauncher() || isRunning(owner.start);
}

/** A process in a child namespace has another pid there, but the same start. */
function isRunning(start: string): boolean {
  return readdirSync("/proc").some((name) => /^\d+$/.test(name) && readStart(name) === start);
}

/** In a namespace that Drover created, pid 1 is its launcher. */
function isInsideLauncher(): boolean {
  return /(?:^|\/)(?:drover-init-[^\0/]+|init\.pl)\0/.test(readOrNull("/proc/1/cmdline") ?? "");
}

function readStart(pid: string): string | null {
  const boot = readOrNull("/proc/sys/kernel/random/boot_id");
  const stat = readOrNull(`/proc/${pid}/stat`);
  const namespace = readLinkOrNull(`/proc/${pid}/ns/pid`);
  if (boot === null || stat === null || namespace === null) return null;
  // The name in parentheses may contain spaces and parentheses. Field 3 is the state, field 22 the start time.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  // A zombie has ended, even if its parent never reaps it, which is common for pid 1 in containers.
  if (fields[0] === "Z" || fields[0] === "X") return null;
  return [boot.trim(), namespace, fields[19]].join(" ");
}

const parseBootId = (start: string): string | undefined => start.split(" ")[0];
const parseNamespace = (start: string): string | undefined => start.split(" ")[1];

function readOrNull(file: string): string | null {
  return readUnlessGone(() => readFileSync(file, "utf8"));
}

function readLinkOrNull(file: string): string | null {
  return readUnlessGone(() => readlinkSync(file));
}

function readUnlessGone<T>(read: () => T): T | null {
  try {
    return read();
  } catch (error) {
    // ESRCH: the process has just ended. EACCES: it belongs to another user, so it is not the owner. Report anything else.
    const code: unknown = error instanceof Error ? Reflect.get(error, "code") : null;
    if (code === "ENOENT" || code === "ESRCH" || code === "EACCES") return null;
    throw error;
  }
}

function isPidAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // EPERM: the process exists, but belongs to another user.
    return error instanceof Error && Reflect.get(error, "code") === "EPERM";
  }
}
