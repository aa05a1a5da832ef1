import { readdirSync, readFileSync } from "node:fs";

/**
 * Whether a descendant of process `pid` did not receive the SIGINT that the process received `agoMs` ago. This happens if
 * `kill -INT` sent the signal to that process alone, whereas a terminal sends it to all. Such a descendant still runs
 * although it neither catches nor ignores SIGINT. A descendant that handles SIGINT does not count, because it may have
 * received the signal and continued, as interpreters do. Neither does one that was started after the signal.
 */
export function hasMissedInterrupt(pid: number, agoMs: number): boolean {
  const parents = new Map<number, number>();
  const defaultHandlers = new Set<number>();
  for (const name of listProcesses()) {
    const status = readOrNull(`/proc/${name}/status`);
    if (status === null) continue;
    parents.set(Number(name), Number(readField(status, "PPid")));
    const handled =
      BigInt(`0x${readField(status, "SigCgt") || "0"}`) | BigInt(`0x${readField(status, "SigIgn") || "0"}`);
    if ((handled & sigint) === 0n && !readField(status, "State").startsWith("Z")) defaultHandlers.add(Number(name));
  }
  const hasChildren = new Set(parents.values());
  // A process with children, such as a shell, only waits for them, so look only at the children.
  return [...defaultHandlers].some(
    (candidate) =>
      !hasChildren.has(candidate) &&
      isDescendant(candidate, pid, parents) &&
      measureAgeMs(candidate) > agoMs - 2 * tickMs,
  );
}

/** The resolution of the start times in /proc. */
const tickMs = 10;

/** Returns the age of a process, or 0 if the process has ended. */
function measureAgeMs(pid: number): number {
  // The process name before these fields may contain spaces and brackets.
  const startTicks = readOrNull(`/proc/${pid}/stat`)?.split(") ").at(-1)?.split(" ")[19];
  const [uptime = "0"] = readOrNull("/proc/uptime")?.split(" ") ?? [];
  return startTicks === undefined ? 0 : Number(uptime) * 1000 - Number(startTicks) * tickMs;
}

const sigint = 1n << 1n;

function isDescendant(descendant: number, ancestor: number, parents: ReadonlyMap<number, number>): boolean {
  for (let current = parents.get(descendant); current !== undefined && current > 0; current = parents.get(current))
    if (current === ancestor) return true;
  return false;
}

function readField(status: string, name: string): string {
  return new RegExp(`^${name}:\\s*(.*)$`, "m").exec(status)?.[1] ?? "";
}

/** Returns an empty list on systems without /proc. */
function listProcesses(): string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

/** Returns null if the process has ended. */
function readOrNull(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}
