import { readFileSync } from "node:fs";
import { printTable, ratio, times } from "../rounds.ts";
import type { Bull } from "./bull.ts";
import { openHttp } from "./connection.ts";
import { type Drover, untilAllEnded } from "./drover.ts";
import { addTo, rate, type Rounds, spread } from "./figures.ts";
import type { Told } from "./tell.ts";

interface Sides {
  drover: Drover;
  bull: Bull | null;
  told: Told;
  redisPid: number;
}

const submitters = 32;

/** Submitted by 32 at a time while 10 slots work them off, until the end of the last one is durable. */
export async function throughput(sides: Sides, rounds: number, runs: number): Promise<void> {
  const both: Rounds = new Map();
  const backlog: Rounds = new Map();
  const cpu: Rounds = new Map();
  const ways = [
    droverWay(sides.drover, sides.told),
    ...(sides.bull ? [bullWay(sides.bull, sides.told, sides.redisPid)] : []),
  ];
  for (let round = -1; round < rounds; round++) {
    for (let at = 0; at < ways.length; at++) {
      const way = ways[(at + Math.max(0, round)) % ways.length]!;
      const cpuBefore = cpuMs(way.pids);
      const whole = await way.whole(round < 0 ? runs / 4 : runs);
      const cpuAfter = cpuMs(way.pids);
      const worked = await way.backlog(round < 0 ? runs / 4 : runs);
      if (round < 0) continue;
      addTo(cpu, way.name, (cpuAfter - cpuBefore) / runs);
      addTo(both, way.name, runs / whole);
      addTo(backlog, way.name, runs / worked);
    }
  }
  const rows = (title: string, of: Rounds, goal: string): string[][] => [
    [`${title}: Drover`, spread(of.get("drover")!, rate), sides.bull ? times(ratio(of, "drover", "bull")) : "", goal],
    ...(sides.bull ? [[`${title}: BullMQ`, spread(of.get("bull")!, rate), "", ""]] : []),
  ];
  printTable(
    `Durable runs, 10 slots, ${runs} runs that do nothing`,
    ["what", "median (spread)", "against BullMQ", "goal"],
    [
      ...rows("submitted and worked off", both, ">= 1x, then 2x"),
      ...rows("worked off from a backlog", backlog, ""),
      [
        "CPU time of coordinator and runner for each run",
        spread(cpu.get("drover")!),
        sides.bull ? times(ratio(cpu, "drover", "bull")) : "",
        "",
      ],
      ...(sides.bull ? [["CPU time of Redis and worker for each job", spread(cpu.get("bull")!), "", ""]] : []),
    ],
  );
}

/** User and system time so far: what a busy machine changes least. */
function cpuMs(pids: readonly number[]): number {
  return pids.reduce((sum, pid) => {
    const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
    return sum + (Number(fields[11]) + Number(fields[12])) * 10;
  }, 0);
}

interface Way {
  name: string;
  pids: number[];
  /** Seconds from the first submit to the last end. */
  whole(runs: number): Promise<number>;
  /** Seconds from the first start to the last end, all of them waiting before. */
  backlog(runs: number): Promise<number>;
}

function droverWay(drover: Drover, told: Told): Way {
  const submit = async (runs: number): Promise<void> => {
    await inParallel(
      runs,
      await Promise.all(
        Array.from({ length: submitters }, async () => {
          const http = await openHttp(drover.url, drover.token);
          return {
            async once(id: string) {
              const { status } = await http.request(
                "POST",
                "/runs",
                JSON.stringify({ agent_name: "noop", parameters: { id, message: "Hello World" } }),
              );
              if (status !== 201) throw new Error(`POST /runs: ${status}`);
            },
            end: http.close,
          };
        }),
      ),
    );
  };
  return {
    name: "drover",
    pids: [drover.coordinatorPid, drover.runnerPid],
    async whole(runs) {
      const began = performance.now();
      const started = told.more("S", runs);
      await submit(runs);
      await started;
      await untilAllEnded(drover);
      return (performance.now() - began) / 1000;
    },
    async backlog(runs) {
      const runner = (await drover.client.runners.list()).items.find(
        ({ executor_profile }) => executor_profile === "noop",
      );
      await drover.client.runners.drain(runner!.runner_id, true);
      await submit(runs);
      const [first, all] = [told.more("S", 1), told.more("S", runs)];
      await drover.client.runners.drain(runner!.runner_id, false);
      await first;
      const began = performance.now();
      await all;
      await untilAllEnded(drover);
      return (performance.now() - began) / 1000;
    },
  };
}

function bullWay(bull: Bull, told: Told, redisPid: number): Way {
  const submit = (runs: number): Promise<void> =>
    inParallel(
      runs,
      Array.from({ length: submitters }, () => ({ once: (id: string) => bull.add("noop", id), end: () => undefined })),
    );
  return {
    name: "bull",
    pids: [bull.workerPid, redisPid],
    async whole(runs) {
      const began = performance.now();
      const finished = told.more("F", runs);
      await submit(runs);
      await finished;
      return (performance.now() - began) / 1000;
    },
    async backlog(runs) {
      await bull.pause();
      await submit(runs);
      const [first, all] = [told.more("S", 1), told.more("F", runs)];
      await bull.resume();
      await first;
      const began = performance.now();
      await all;
      return (performance.now() - began) / 1000;
    },
  };
}

async function inParallel(
  runs: number,
  workers: readonly { once(id: string): Promise<void>; end(): void }[],
): Promise<void> {
  let left = runs;
  await Promise.all(
    workers.map(async ({ once, end }) => {
      while (left-- > 0) await once(`t${left}`);
      end();
    }),
  );
}
