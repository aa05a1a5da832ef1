import { accessSync, constants, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Mount, readMounts } from "./mounts.ts";

/** The parent cgroup for a command's cgroup, per limit. */
export interface CgroupParents {
  memoryBytes: CgroupPlace | null;
  processes: CgroupPlace | null;
  /** Why a parent is null. */
  missing: string;
  /** All cgroup mount points. */
  mountPoints: readonly string[];
}

export interface CgroupPlace {
  parent: string;
  version: 1 | 2;
}

const noController =
  "no cgroup with the controllers memory and pids is open to this user; run as root, or under systemd with Delegate=yes";

/**
 * Looks below this process's own cgroup, so that limits on Drover apply to its commands too. Version 2 forbids limited
 * children in a cgroup with processes, so there it uses the parent, if that was delegated.
 */
export function findCgroupParents(
  membership: string = readOr("/proc/self/cgroup"),
  mounts: Mount[] = readMounts(),
): CgroupParents {
  const mountPoints = mounts.filter(({ type }) => type === "cgroup" || type === "cgroup2").map(({ point }) => point);
  const found = { memoryBytes: place("memory", membership, mounts), processes: place("pids", membership, mounts) };
  return {
    ...found,
    missing: membership === "" ? "this system has no cgroups" : noController,
    mountPoints: [...new Set(mountPoints)],
  };
}

function place(controller: string, membership: string, mounts: readonly Mount[]): CgroupPlace | null {
  const own = ownDirectory(controller, membership, mounts);
  if (own !== null && isWritable(own)) return { parent: own, version: 1 };
  const unified = ownDirectory("", membership, mounts);
  if (unified === null) return null;
  for (const parent of [unified, dirname(unified)]) {
    if (isWritable(parent) && readOr(join(parent, "cgroup.subtree_control")).split(/\s/).includes(controller))
      return { parent, version: 2 };
  }
  return null;
}

/** This process's cgroup in the hierarchy of a controller. "" is the unified hierarchy of version 2. */
function ownDirectory(controller: string, membership: string, mounts: readonly Mount[]): string | null {
  const path = membership
    .split("\n")
    .map((line) => /^\d+:([^:]*):(.*)$/.exec(line))
    .find(
      (match) => match !== null && (controller === "" ? match[1] === "" : match[1]!.split(",").includes(controller)),
    )?.[2];
  if (path === undefined) return null;
  for (const { type, root, point, options } of mounts) {
    const isIt = controller === "" ? type === "cgroup2" : type === "cgroup" && options.includes(controller);
    // a container mounts only a part of the tree
    if (isIt && (root === "/" || path === root || path.startsWith(`${root}/`)))
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

function readOr(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return ""; // not Linux, or masked: no cgroups
  }
}
