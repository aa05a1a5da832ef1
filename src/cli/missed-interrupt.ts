import { readdirSync, readFileSync } from "node:fs";

/**
 * Was a SIGINT that we got sent to us alone (`kill -INT`), and not by the terminal to all? Then what we started
 * still runs although it would have died of it: neither caught nor ignored. A program that handles SIGINT may have
 * had it and gone on, as an interpreter does; it is left alone. What was started since then could not have it.
 */
export function missedInterrupt(pid: number, agoMs: number): boolean {
  const parents = new Map<number, number>();
  const unready = new Set<number>();
  for (const name of listProcesses()) {
    const status = read(`/proc/${name}/status`);
    if (status === null) continue;
    parents.set(Number(name), Number(field(status, "PPid")));
    const handled = BigInt(`0x${field(status, "SigCgt") || "0"}`) | BigInt(`0x${field(status, "SigIgn") || "0"}`);
    if ((handled & sigint) === 0n && !field(status, "State").startsWith("Z")) unready.add(Number(name));
  }
  const isAboveSomeone = new Set(parents.values());
  // what waits for others, as a shell does, is as its children are
  return [...unready].some(
    (one) => !isAboveSomeone.has(one) && descends(one, pid, parents) && ageMs(one) > agoMs - 2 * tickMs,
  );
}

/** Of the clock by which the kernel tells when a process was started. */
const tickMs = 10;

/** 0 for a process that ended meanwhile. */
function ageMs(pid: number): number {
  // the name before it may hold spaces and brackets
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

/** None where there is no /proc: then nobody is known to have missed it. */
function listProcesses(): string[] {
  try {
    return readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return [];
    throw error;
  }
}

/** null for a process that ended meanwhile. */
function read(file: string): string | null {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error) return null;
    throw error;
  }
}
