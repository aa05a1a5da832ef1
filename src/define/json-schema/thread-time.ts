import { readFileSync, readlinkSync } from "node:fs";

/** The kernel's id of the calling thread; null if the host does not provide it. */
export function getCurrentThread(): string | null {
  return readOrNull(() => readlinkSync("/proc/thread-self").split("/").at(-1) ?? null);
}

/** The CPU time a thread of this process has used, in milliseconds; null if the host does not provide it. */
export function readThreadCpuMs(thread: string | null): number | null {
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
    // The host has no /proc, or the thread has exited.
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}
