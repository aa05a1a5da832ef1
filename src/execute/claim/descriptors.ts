import { readdirSync, readFileSync } from "node:fs";

/** What one run opens at its peak: its log, the pipes of two programs while they are spawned, files on their way. */
const neededByRun = 16;

export interface Descriptors {
  open: number;
  limit: number;
}

/** Of this process; null where the system does not say, which is everywhere but on Linux. */
export function countDescriptors(): Descriptors | null {
  let limits: string;
  try {
    limits = readFileSync("/proc/self/limits", "utf8");
  } catch (error) {
    // none left to read it with
    if (isOutOfDescriptors(error)) return { open: 1, limit: 1 };
    return null;
  }
  const limit = Number(/^Max open files\s+(\d+)/m.exec(limits)?.[1] ?? Infinity);
  // far from the limit of any runner: a listing would cost more than it tells
  if (limit >= 65_536) return null;
  try {
    return { open: readdirSync("/proc/self/fd").length - 1, limit };
  } catch (error) {
    if (isOutOfDescriptors(error)) return { open: limit, limit };
    throw error;
  }
}

/** What a runner opens for itself after its start: its lock, its logs, connections to its coordinator. */
const neededByRunner = 8;

/** Whether a runner that starts now will have enough for one run. */
export function hasRoomForOneRun(descriptors: Descriptors | null): boolean {
  return descriptors === null || descriptors.limit - descriptors.open >= neededByRunner + neededByRun;
}

/** How many more runs there are descriptors for. */
export function roomForRuns(descriptors: Descriptors | null): number {
  return descriptors === null
    ? Infinity
    : Math.max(0, Math.floor((descriptors.limit - descriptors.open) / neededByRun));
}

export function describeShortage({ open, limit }: Descriptors): string {
  return `${open} of the ${limit} files that this process may have open are open, and a run needs ${neededByRun}; raise \`ulimit -n\``;
}

export function isOutOfDescriptors(error: unknown): error is Error {
  return error instanceof Error && "code" in error && (error.code === "EMFILE" || error.code === "ENFILE");
}
