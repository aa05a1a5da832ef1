import { readFileSync } from "node:fs";
import { setTimeout as pause } from "node:timers/promises";
import { printTable } from "../rounds.ts";
import type { Drover } from "./drover.ts";
import { untilAllEnded } from "./drover.ts";

/** Each after one run, with nothing to do since. */
export async function idleMemory(drover: Drover): Promise<void> {
  await drover.client.submit({ agent_name: "true", parameters: { id: "memory" } });
  await untilAllEnded(drover);
  await pause(4000);
  printTable(
    "Idle memory, as the command line starts them, after one run",
    ["process", "resident", "of it its own", "goal"],
    [
      ["runner, two profiles", megabytes(drover.runnerPid, "Rss"), megabytes(drover.runnerPid, "Private"), "< 80 MB"],
      ["coordinator", megabytes(drover.coordinatorPid, "Rss"), megabytes(drover.coordinatorPid, "Private"), "< 120 MB"],
    ],
  );
}

/** "Private" counts what no other process shares. */
function megabytes(pid: number, what: "Rss" | "Private"): string {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const sizes = [...rollup.matchAll(new RegExp(`^${what}\\w*:\\s+(\\d+) kB`, "gm"))].map(([, kb]) => Number(kb));
  return `${(sizes.reduce((sum, kb) => sum + kb, 0) / 1024).toFixed(0)} MB`;
}
