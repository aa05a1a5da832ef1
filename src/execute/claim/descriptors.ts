import { readdirSync, readFileSync } from "node:fs";

/**
 * The most descriptors that one run has open at once: its log, the pipes of two programs being spawned, files being
 * uploaded.
 */
const descriptorsPerRun = 16;

export interface Descriptors {
  open: number;
  limit: number;
}

/**
 * Counts the file descriptors of this process. Returns null if the count is unknown (only Linux reports it) or the limit
 * is too high to matter.
 */
export function countDescriptors(): Descriptors | null {
  let limits: string;
  try {
    limits = readFileSync("/proc/self/limits", "utf8");
  } catch (error) {
    // No descriptor is left to open /proc/self/limits.
    if (isOutOfDescriptors(error)) return { open: 1, limit: 1 };
    return null;
  }
  const limit = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
  // No runner gets near such a limit, so skip the listing.
  if (limit >= 65_536) return null;
  try {
    return { open: readdirSync("/proc/self/fd").length - 1, limit };
  } catch (error) {
    if (isOutOfDescriptors(error)) return { open: limit, limit };
    throw error;
  }
}

/** Descriptors that the runner itself opens after its start: its lock, its logs, connections to the coordinator. */
const descriptorsPerRunner = 8;

/** Whether a runner that starts now has enough descriptors for one run. */
export function hasRoomForOneRun(descriptors: Descriptors | null): boolean {
  return descriptors === null || descriptors.limit - descriptors.open >= descriptorsPerRunner + descriptorsPerRun;
}

/** Returns for how many more runs the free descriptors are enough. */
export function countPossibleRuns(descriptors: Descriptors | null): number {
  return descriptors === null
    ? Infinity
    : Math.max(0, Math.floor((descriptors.limit - descriptors.open) / descriptorsPerRun));
}

export function describeShortage({ open, limit }: Descriptors): string {
  return `this process has ${open} of at most ${limit} files open, and a run needs ${descriptorsPerRun} more; raise \`ulimit -n\``;
}

export function isOutOfDescriptors(error: unknown): error is Error {
  return error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE");
}
