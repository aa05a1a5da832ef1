import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { openCoordinator, type OpenCoordinator } from "../src/compose/open-coordinator.ts";
import { agentSchema } from "../src/model/agent.ts";
import { scheduleDefinitionSchema } from "../src/model/schedule.ts";
import type { Op } from "../src/model/store.ts";
import type { RecordStore } from "../src/record/record-store.ts";
import { median, formatMs, printTable } from "./rounds.ts";
import { describeMachine, chooseRounds, runBench, isRequested } from "./run-bench.ts";

/** Measures what schedules cost while nothing is due, and how late the run of a slot is stored. */
async function main(): Promise<void> {
  process.stdout.write(`${describeMachine()}\n`);
  if (isRequested("idle")) {
    const rows: string[][] = [];
    for (const count of [0, 10_000]) rows.push([String(count), (await measureIdleShare(count)).toFixed(3)]);
    printTable("schedules: CPU use of an idle coordinator", ["schedules", "% of one core (goal: at most + 1 %)"], rows);
  }
  if (isRequested("late")) {
    const rows: string[][] = [];
    for (const atOnce of [1, 20, 200]) {
      const delays = (await measureLateness(atOnce, chooseRounds(3))).toSorted((a, b) => a - b);
      const p99 = delays[Math.ceil(delays.length * 0.99) - 1] ?? 0;
      rows.push([
        String(atOnce),
        String(delays.length),
        formatMs(median(delays)),
        formatMs(p99),
        formatMs(delays.at(-1) ?? 0),
        "p99 <= 250 ms",
      ]);
    }
    printTable("schedules: from the slot to its run", ["due at once", "slots", "p50", "p99", "max", "goal"], rows);
  }
}

/** Seconds during which nothing is due. */
const idleSeconds = 20;

async function measureIdleShare(count: number): Promise<number> {
  return withCoordinator(undefined, async ({ store }) => {
    await putSchedules(store, count, { cron: "0 0 1 1 *" }, Date.now());
    await sleep(2000);
    const cpuBefore = process.cpuUsage();
    await sleep(idleSeconds * 1000);
    const { user, system } = process.cpuUsage(cpuBefore);
    return ((user + system) / 1e6 / idleSeconds) * 100;
  });
}

/** Measured alongside 10,000 schedules that are not due. */
async function measureLateness(atOnce: number, rounds: number): Promise<number[]> {
  const delays: number[] = [];
  return withCoordinator(
    (store) => ({
      ...store,
      // The wrapper returns each operation's own result type.
      apply: (async (ops: readonly Op[]) => {
        const results = await store.apply(ops as never);
        for (const op of ops)
          if (op.op === "fire_schedule" && op.run) delays.push(Date.now() - Date.parse(op.run.slot));
        return results;
      }) as RecordStore["apply"],
    }),
    async ({ store }) => {
      await putSchedules(store, 10_000, { cron: "0 0 1 1 *" }, Date.now());
      await putSchedules(store, atOnce, { every: "10s", overlap: "allow" }, Date.now());
      while (delays.length < atOnce * rounds) await sleep(100);
      return delays.slice(0, atOnce * rounds);
    },
  );
}

async function putSchedules(
  store: RecordStore,
  count: number,
  timing: Record<string, string>,
  anchor: number,
): Promise<void> {
  const at = new Date(anchor).toISOString();
  const due = timing["cron"] ? Date.UTC(new Date().getUTCFullYear() + 1, 0, 1) : anchor + 10_000;
  for (let from = 0; from < count; from += 500)
    await store.apply(
      Array.from({ length: Math.min(500, count - from) }, (_, index) => {
        const name = `${timing["cron"] ? "idle" : "due"}-${from + index}`;
        const definition = scheduleDefinitionSchema.parse({ name, ...timing });
        const schedule = {
          schedule_id: name,
          agent_name: "noop",
          created_by: "bench",
          source: "api" as const,
          definition,
        };
        const times = { anchor: at, due_at: new Date(due).toISOString(), enabled: true };
        return { op: "put_schedule" as const, schedule: { ...schedule, ...times } };
      }),
    );
}

async function withCoordinator<T>(
  instrument: ((store: RecordStore) => RecordStore) | undefined,
  work: (coordinator: OpenCoordinator) => Promise<T>,
): Promise<T> {
  const stateDirectory = mkdtempSync(join(tmpdir(), "drover-bench-"));
  const coordinator = await openCoordinator({
    stateDirectory,
    firesSchedules: true,
    ...(instrument ? { instrument } : {}),
  });
  coordinator.agents.setFileAgents([agentSchema.parse({ name: "noop", type: "procedural", command: "true" })]);
  try {
    return await work(coordinator);
  } finally {
    await coordinator.stop();
    rmSync(stateDirectory, { recursive: true, force: true });
  }
}

runBench(main, {});
