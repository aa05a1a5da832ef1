import { accessSync, constants, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Mount, readMounts } from "./mounts.ts";

/** The parent cgroup for a command's cgroup, per limit. */
export interface CgroupParents {
  memoryBytes: CgroupParent | null;
  processes: CgroupParent | null;
  /** Explains why a parent is null. */
  missingReason: string;
  /** All cgroup mount points. */
  mountPoints: readonly string[];
}

export interface CgroupParent {
  parent: string;
  version: 1 | 2;
}

const noController =
  "no cgroup with the controllers memory and pids is writable for this user; run as root, or under systemd with Delegate=yes";

/**
 * Finds parents inside this process's own cgroup, so that limits on Drover apply to its commands too. Version 2 forbids
 * limited children in a cgroup that contains processes, so there the parent cgroup is used if it was delegated.
 */
export function findCgroupParents(
  membership: string = readOrEmpty("/proc/self/cgroup"),
  mounts: readonly Mount[] = readMounts(),
): CgroupParents {
  const mountPoints = mounts.filter(({ type }) => type === "cgroup" || type === "cgroup2").map(({ point }) => point);
  return {
    memoryBytes: findParent("memory", membership, mounts),
    processes: findParent("pids", membership, mounts),
    missingReason: membership === "" ? "this system has no cgroups" : noController,
    mountPoints: [...new Set(mountPoints)],
  };
}

function findParent(controller: string, membership: string, mounts: readonly Mount[]): CgroupParent | null {
  const directory = findOwnCgroup(controller, membership, mounts);
  if (directory !== null && isWritable(directory)) return { parent: directory, version: 1 };
  const unified = findOwnCgroup("", membership, mounts);
  if (unified === null) return null;
  for (const parent of [unified, dirname(unified)]) {
    if (isWritable(parent) && readOrEmpty(join(parent, "cgroup.subtree_control")).split(/\s/).includes(controller))
      return { parent, version: 2 };
  }
  return null;
}

/** Returns this process's cgroup in the hierarchy of a controller. "" stands for the unified hierarchy of version 2. */
function findOwnCgroup(controller: string, membership: string, mounts: readonly Mount[]): string | null {
  const path = membership
    .split("\n")
    .map((line) => /^\d+:([^:]*):(.*)$/.exec(line))
    .find(
      (match) => match !== null && (controller === "" ? match[1] === "" : match[1]!.split(",").includes(controller)),
    )?.[2];
  if (path === undefined) return null;
  for (const { type, root, point, options } of mounts) {
    const isHierarchy = controller === "" ? type === "cgroup2" : type === "cgroup" && options.includes(controller);
    // A container mounts only part of the tree.
    if (isHierarchy && (root === "/" || path === root || path.startsWith(`${root}/`)))
      return join(point, root === "/" ? path : path.slice(root.length));
  }
  return null;
}

function isWritable(directory: string): boolean {
  try {
    accessSync(directory, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function readOrEmpty(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // The system is not Linux, or /proc is masked.
  }
}
