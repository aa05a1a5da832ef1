import { readFileSync, readlinkSync } from "node:fs";

/** The kernel's number of the calling thread; null where the host does not say. */
export function ownThread(): string | null {
  return readOrNull(() => readlinkSync("/proc/thread-self").split("/").at(-1) ?? null);
}

/** Milliseconds of CPU that a thread of this process has used; null where the host does not say. */
export function threadCpuMs(thread: string | null): number | null {
  if (thread === null) return null;
  const nanoseconds = readOrNull(
    () => readFileSync(`/proc/self/task/${thread}/schedstat`, "utf8").split(" ")[0] ?? null,
  );
  return nanoseconds === null ? null : Number(nanoseconds) / 1e6;
}

function readOrNull(read: () => string | null): string | null {
  try {
    return read();
  } catch (error) {
    // no /proc, or a thread that has ended
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}
