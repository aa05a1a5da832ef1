import { setTimeout as pause } from "node:timers/promises";
import { printTable } from "../rounds.ts";
import type { Drover } from "./drover.ts";
import { waitForAllEnded } from "./drover.ts";
import { readCpuMs, readMegabytes } from "./processes.ts";

const idleSeconds = 10;

/** Memory and CPU time of the idle processes after one run. `server` returns the CPU time of the database server, if any. */
export async function measureIdleMemory(
  drover: Drover,
  title: string,
  server: (() => number) | null = null,
): Promise<void> {
  await drover.client.submit({ agent_name: "true", parameters: { id: "memory" } });
  await waitForAllEnded(drover);
  await pause(4000);
  const cpuReaders = {
    runner: readCpu(drover.runnerPid),
    coordinator: readCpu(drover.coordinatorPid),
    server: server ?? null,
  };
  const cpuBefore = {
    runner: cpuReaders.runner(),
    coordinator: cpuReaders.coordinator(),
    server: cpuReaders.server?.() ?? 0,
  };
  await pause(idleSeconds * 1000);
  const part = (name: keyof typeof cpuReaders): string =>
    (((cpuReaders[name]?.() ?? 0) - cpuBefore[name]) / (idleSeconds * 10)).toFixed(1);
  const row = (label: string, pid: number, name: "runner" | "coordinator", goal: string): string[] => [
    label,
    readMegabytes(pid, "Rss"),
    readMegabytes(pid, "Private"),
    goal,
    part(name),
  ];
  printTable(
    `Idle, ${title}, as the command line starts them, after one run`,
    ["process", "resident", "private part", "goal", `CPU over ${idleSeconds} s, % of one core`],
    [
      row("runner, two profiles", drover.runnerPid, "runner", "< 80 MB"),
      row("coordinator", drover.coordinatorPid, "coordinator", "< 120 MB"),
      ...(server ? [["database server, for the two of them", "", "", "", part("server")]] : []),
    ],
  );
}

function readCpu(pid: number): () => number {
  return () => readCpuMs([pid]);
}
