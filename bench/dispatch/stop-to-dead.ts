import { spawnSync } from "node:child_process";
import { open } from "node:fs";
import { Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import { median, formatMs, printTable } from "../rounds.ts";
import { type Drover, waitForAllEnded } from "./drover.ts";
import { percentile } from "./figures.ts";

/** The default grace between SIGTERM and SIGKILL. */
const graceMs = 2000;

/** Measures from just before the stop request until the last process of the run closes a pipe that all of them hold open. */
export async function measureStopToDead(drover: Drover, directory: string, rounds: number): Promise<void> {
  const obeys: number[] = [];
  const ignores: number[] = [];
  for (let warm = 0; warm < 5; warm++) await stopOne(drover, directory, "obeys");
  for (let round = 0; round < rounds; round++) {
    for (let sample = 0; sample < 25; sample++) obeys.push(await stopOne(drover, directory, "obeys"));
    ignores.push(...(await Promise.all(Array.from({ length: 10 }, () => stopOne(drover, directory, "ignores")))));
  }
  await waitForAllEnded(drover);
  const row = (label: string, durations: number[], goal: string): string[] => [
    label,
    String(durations.length),
    formatMs(median(durations)),
    formatMs(percentile(durations, 0.99)),
    goal,
  ];
  printTable(
    "Stop to every process dead, PID namespace",
    ["what", "samples", "p50", "p99", "goal (p99)"],
    [
      row("obeys SIGTERM", obeys, "50 ms"),
      row("ignores it, 2 s of grace, ten at once", ignores, formatMs(graceMs + 200)),
    ],
  );
}

let count = 0;

async function stopOne({ client }: Drover, directory: string, agent_name: "obeys" | "ignores"): Promise<number> {
  const fifo = join(directory, `fifo-${count++}`);
  const { status } = spawnSync("mkfifo", [fifo]);
  if (status !== 0) throw new Error("mkfifo failed");
  // Not a FileHandle, because the socket below owns the descriptor.
  const opened = promisify(open)(fifo, "r");
  const { run_id } = await client.submit({ agent_name, parameters: { fifo } });
  // Resolves when the command has opened its end.
  const fd = await opened;
  const dead = new Promise<void>((resolve) => {
    const socket = new Socket({ fd, readable: true, writable: false });
    socket.resume().once("end", resolve);
  });
  await new Promise((resolve) => setTimeout(resolve, 30));
  const startedAt = performance.now();
  await Promise.all([client.runs.stop(run_id), dead]);
  return performance.now() - startedAt;
}
