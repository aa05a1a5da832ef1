import { readFileSync } from "node:fs";

/** One line of /proc/self/mountinfo. */
export interface Mount {
  /** `major:minor` of the file system. */
  device: string;
  /** The mounted directory of that file system. */
  root: string;
  /** The mount point. */
  point: string;
  type: string;
  /** Options of the file system, such as the controllers of a cgroup hierarchy. */
  options: readonly string[];
}

/** The mounts rarely change, but are read for every command. */
let lastParsed: { text: string; mounts: readonly Mount[] } = { text: "", mounts: [] };

/** Returns all mounts in mount order, or an empty list if the system does not provide them. */
export function readMounts(text: string = readMountinfo()): readonly Mount[] {
  if (text !== lastParsed.text) lastParsed = { text, mounts: parseMounts(text) };
  return lastParsed.mounts;
}

function parseMounts(text: string): Mount[] {
  const mounts: Mount[] = [];
  for (const line of text.split("\n")) {
    const [mountFields = "", fileSystemFields = ""] = line.split(" - ");
    const [, , device, root, point] = mountFields.split(" ");
    const [type, , options = ""] = fileSystemFields.split(" ");
    if (device === undefined || root === undefined || point === undefined || type === undefined) continue;
    mounts.push({ device, root: unescapePath(root), point: unescapePath(point), type, options: options.split(",") });
  }
  return mounts;
}

function readMountinfo(): string {
  try {
    return readFileSync("/proc/self/mountinfo", "utf8");
  } catch {
    return ""; // The system is not Linux, or /proc is masked.
  }
}

/** mountinfo escapes whitespace and backslashes as octal numbers. */
function unescapePath(path: string): string {
  return path.includes("\\")
    ? path.replaceAll(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(parseInt(digits, 8)))
    : path;
}
