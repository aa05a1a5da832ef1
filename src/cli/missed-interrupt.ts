import { readdirSync, readFileSync } from "node:fs";

/**
 * Whether a process that we started did not get the SIGINT that we got, because it was sent to us alone (`kill -INT`) and
 * not by the terminal to everybody. Such a process still runs although it neither catches nor ignores SIGINT. A program
 * that handles SIGINT may have received it and continued, as interpreters do, so it does not count. Neither does a
 * process that was started after the signal.
 */
export function missedInterrupt(pid: number, agoMs: number): boolean {
  const parents = new Map<number, number>();
  const unhandled = new Set<number>();
  for (const name of listProcesses()) {
    const status = read(`/proc/${name}/status`);
    if (status === null) continue;
    parents.set(Number(name), Number(field(status, "PPid")));
    const handled = BigInt(`0x${field(status, "SigCgt") || "0"}`) | BigInt(`0x${field(status, "SigIgn") || "0"}`);
    if ((handled & sigint) === 0n && !field(status, "State").startsWith("Z")) unhandled.add(Number(name));
  }
  const hasChildren = new Set(parents.values());
  // A process that waits for its children, like a shell, is judged by them.
  return [...unhandled].some(
    (one) => !hasChildren.has(one) && descends(one, pid, parents) && ageMs(one) > agoMs - 2 * tickMs,
  );
}

/** Resolution of the start times in /proc. */
const tickMs = 10;

/** 0 if the process has ended. */
function ageMs(pid: number): number {
  // The process name before these fields may contain spaces and brackets.
  const started = read(`/proc/${pid}/stat`)?.split(") ").at(-1)?.split(" ")[19];
  const [up = "0"] = read("/proc/uptime")?.split(" ") ?? [];
  return started === undefined ? 0 : Number(up) * 1000 - Number(started) * tickMs;
}

const sigint = 1n << 1n;

function descends(from: number, ancestor: number, parents: ReadonlyMap<number, number>): boolean {
  for (let at = parents.get(from); at !== undefined && at > 0; at = parents.get(at)) if (at === ancestor) return true;
  return false;
}

function field(status: string, name: string): string {
  return new RegExp(`^${name}:\\s*(.*)$`, "m").exec(status)?.[1] ?? "";
}

/** Empty on systems without /proc. */
function listProcesses(): string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

/** null if the process has ended. */
function read(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}
