import { existsSync, mkdirSync, readdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Limits } from "../model/process.ts";
import { findCgroupParents, type CgroupParents } from "./cgroup-parents.ts";
import { hasErrorCode } from "./process-group.ts";

export type CgroupLimit = "memoryBytes" | "processes";

/**
 * The cgroup of one command. The outer cgroup sets the limits, and the inner one contains the command. A process that creates a
 * cgroup namespace sees the inner one as the root and can change only that.
 */
export interface Cgroup {
  /** A process that writes 0 to these files moves into the cgroup. */
  procsFiles: readonly string[];
  /** Mount points to make read-only for the command, so that it cannot leave the cgroup. */
  mountPoints: readonly string[];
  /** Returns the limit that was exceeded, or null. */
  findExceeded(): CgroupLimit | null;
  /** Removes the cgroup. All its processes must be dead. */
  remove(): Promise<void>;
}

export type CgroupResult = { ok: true; cgroup: Cgroup | null } | { ok: false; limit: CgroupLimit; reason: string };

/** Creates a cgroup with these limits, or returns the reason why this host cannot. On failure, leaves nothing behind. */
export function createCgroup(
  limits: Limits | undefined,
  findParents: () => CgroupParents = findCgroupParents,
): CgroupResult {
  const cgroupLimits = toCgroupLimits(limits);
  if (cgroupLimits.length === 0) return { ok: true, cgroup: null };
  const parents = findParents();
  const name = `drover-${process.pid}-${process.hrtime.bigint()}`;
  const directories = new Map<CgroupLimit, string>();
  for (const [limit, value] of cgroupLimits) {
    const target = parents[limit];
    const fail = (reason: string): CgroupResult => {
      for (const directory of new Set(directories.values())) tryRemove(directory);
      return { ok: false, limit, reason };
    };
    if (target === null) return fail(parents.missingReason);
    const directory = join(target.parent, name);
    directories.set(limit, directory);
    try {
      for (const path of [directory, toInnerDirectory(directory)]) if (!existsSync(path)) mkdirSync(path);
      setLimit(directory, target.version, limit, value);
      // In version 1, a memory limit does not include child cgroups by default.
      if (target.version === 1) setLimit(toInnerDirectory(directory), 1, limit, value);
    } catch (error) {
      return fail(
        `this user cannot set the limit in ${target.parent} (${describeError(error)}); it requires root or a delegated cgroup`,
      );
    }
  }
  const unique = [...new Set(directories.values())];
  return {
    ok: true,
    cgroup: {
      procsFiles: unique.map((directory) => join(toInnerDirectory(directory), "cgroup.procs")),
      mountPoints: parents.mountPoints,
      findExceeded: () =>
        cgroupLimits.map(([limit]) => limit).find((limit) => hasExceeded(directories.get(limit)!, limit)) ?? null,
      remove: async () => {
        for (const directory of unique) await removeWithRetries(directory);
      },
    },
  };
}

/** Removes empty cgroups of Drover processes that no longer exist. Returns their paths. */
export function sweepCgroups(parents: CgroupParents = findCgroupParents()): string[] {
  const removed: string[] = [];
  for (const parent of new Set([parents.memoryBytes?.parent, parents.processes?.parent])) {
    if (parent === undefined) continue;
    for (const name of readdirSync(parent)) {
      const owner = /^drover-(\d+)-\d+$/.exec(name)?.[1];
      if (owner !== undefined && !existsSync(`/proc/${owner}`) && tryRemove(join(parent, name)))
        removed.push(join(parent, name));
    }
  }
  return removed;
}

const toInnerDirectory = (directory: string): string => join(directory, "command");

function toCgroupLimits(limits: Limits | undefined): [CgroupLimit, number][] {
  const cgroupLimits: [CgroupLimit, number][] = [];
  if (limits?.memoryBytes !== undefined) cgroupLimits.push(["memoryBytes", limits.memoryBytes]);
  if (limits?.processes !== undefined) cgroupLimits.push(["processes", limits.processes]);
  return cgroupLimits;
}

function setLimit(directory: string, version: 1 | 2, limit: CgroupLimit, value: number): void {
  if (limit === "processes") return writeFileSync(join(directory, "pids.max"), String(value));
  if (version === 2) {
    writeFileSync(join(directory, "memory.max"), String(value));
    writeIfExists(join(directory, "memory.swap.max"), "0");
    // Kill the whole command rather than one of its processes.
    return writeIfExists(join(directory, "memory.oom.group"), "1");
  }
  writeFileSync(join(directory, "memory.limit_in_bytes"), String(value));
  // Limit memory and swap together, so that swap cannot be used to bypass the limit.
  writeIfExists(join(directory, "memory.memsw.limit_in_bytes"), String(value));
}

function writeIfExists(file: string, value: string): void {
  if (existsSync(file)) writeFileSync(file, value);
}

/** Version 1 counts an event in the cgroup of the process: the inner one, or one that the command created. */
function hasExceeded(directory: string, limit: CgroupLimit): boolean {
  const counters: [string, string][] =
    limit === "processes"
      ? [["pids.events", "max"]]
      : [
          ["memory.events", "oom_kill"],
          ["memory.oom_control", "oom_kill"],
        ];
  return (
    counters.some(([file, name]) => readCounter(join(directory, file), name) > 0) ||
    listChildCgroups(directory).some((child) => hasExceeded(child, limit))
  );
}

function listChildCgroups(directory: string): string[] {
  return readdirSync(directory, { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map((entry) => join(directory, entry.name));
}

function readCounter(file: string, name: string): number {
  if (!existsSync(file)) return 0; // The file belongs to the other cgroup version.
  const line = readFileSync(file, "latin1")
    .split("\n")
    .find((text) => text.startsWith(`${name} `));
  return line === undefined ? 0 : Number(line.slice(name.length + 1));
}

/** The kernel frees a cgroup shortly after its last process ends. If it takes longer, the next sweep removes it. */
async function removeWithRetries(directory: string): Promise<void> {
  for (let tries = 0; !tryRemove(directory) && tries < 50; tries += 1)
    await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Returns false while the cgroup contains processes. */
function tryRemove(directory: string): boolean {
  try {
    // The command may have created child cgroups.
    for (const child of listChildCgroups(directory)) tryRemove(child);
    rmdirSync(directory);
    return true;
  } catch (error) {
    return hasErrorCode(error, "ENOENT");
  }
}

function describeError(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : String(error);
}
