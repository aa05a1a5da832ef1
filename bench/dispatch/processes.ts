import { readdirSync, readFileSync } from "node:fs";

/** User and system time so far, which a busy machine distorts least. */
export function readCpuMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => sum + ownTicks(pid) * 10, 0);
}

/** CPU time of a process and all its descendants, including exited ones. */
export function readTreeCpuMs(pid: number): number {
  const children = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && readParent(name) === pid);
  return (ownTicks(pid) + sumField(pid, 13, 14)) * 10 + readCpuMs(children.map(Number));
}

/** "Private" counts only memory not shared with other processes. */
export function readMegabytes(pid: number, what: "Rss" | "Private"): string {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const sizes = [...rollup.matchAll(new RegExp(`^${what}\\w*:\\s+(\\d+) kB`, "gm"))].map(([, kb]) => Number(kb));
  return `${(sizes.reduce((sum, kb) => sum + kb, 0) / 1024).toFixed(0)} MB`;
}

const ownTicks = (pid: number): number => sumField(pid, 11, 12);

function sumField(pid: number, ...fields: number[]): number {
  const all = readStat(pid);
  return fields.reduce((sum, field) => sum + Number(all[field] ?? 0), 0);
}

function readParent(pid: string): number {
  return Number(readStat(pid)[1] ?? 0);
}

/** Returns what follows the program's name, or nothing if the process has ended. */
function readStat(pid: number | string): string[] {
  try {
    return readFileSync(`/proc/${pid}/stat`, "utf8").split(") ").at(-1)?.split(" ") ?? [];
  } catch (error) {
    if (error instanceof Error && "code" in error && (error.code === "ENOENT" || error.code === "ESRCH")) return [];
    throw error;
  }
}
