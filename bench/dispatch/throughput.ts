import { runRounds, rotate, formatMs } from "../rounds.ts";
import { addSample, printComparison, formatRate, type Rounds } from "./figures.ts";
import { type Side, submitAll } from "./side.ts";
import type { JobTimes } from "./job-times.ts";

const submitters = 32;
const maxSeconds = 200;

/** Processes runs that do nothing, 10 at a time, until the last end is stored. The first side is Drover. */
export async function measureThroughput(
  sides: readonly Side[],
  jobTimes: JobTimes,
  rounds: number,
  runs: number,
  goal?: string,
): Promise<void> {
  const wholeTimes: Rounds = new Map();
  const backlog: Rounds = new Map();
  const cpu: Rounds = new Map();
  const completedRounds = await runRounds(rounds, maxSeconds, async (round) => {
    for (const side of rotate(sides, round)) {
      const many = round < 0 ? runs / 4 : runs;
      const cpuBefore = side.cpuMs();
      const whole = await submitAndProcess(side, jobTimes, many);
      const cpuUsed = side.cpuMs() - cpuBefore;
      const worked = await processBacklog(side, jobTimes, many);
      if (round < 0) continue;
      addSample(cpu, side.name, cpuUsed / many);
      addSample(wholeTimes, side.name, many / whole);
      addSample(backlog, side.name, many / worked);
    }
  });
  const [droverSide, ...peers] = sides;
  const title = `${runs.toLocaleString("en")} runs that do nothing, 10 slots, ${completedRounds} rounds`;
  printComparison(`${title}: submitted by ${submitters} at once and worked off`, [droverSide!], peers, [
    { title: "per second", values: wholeTimes, show: formatRate, ...(goal ? { goal } : {}) },
  ]);
  printComparison(`${title}: worked off from a backlog`, [droverSide!], peers, [
    { title: "per second", values: backlog, show: formatRate },
  ]);
  printComparison("CPU time of servers and workers for each run, in the first of these two", [droverSide!], peers, [
    { title: "CPU", values: cpu, show: formatMs },
  ]);
}

/** Returns the seconds from the first submit to the last end. */
async function submitAndProcess(side: Side, jobTimes: JobTimes, runs: number): Promise<number> {
  const startedAt = performance.now();
  const started = jobTimes.more("S", runs);
  await submitAll(side, submitters, runs);
  await started;
  await side.allEnded();
  return (performance.now() - startedAt) / 1000;
}

/** Returns the seconds from the first start to the last end of a backlog. */
async function processBacklog(side: Side, jobTimes: JobTimes, runs: number): Promise<number> {
  await side.pause();
  if (side.batch) await side.batch(runs);
  else await submitAll(side, submitters, runs);
  const [first, allStarted] = [jobTimes.more("S", 1), jobTimes.more("S", runs)];
  await side.resume();
  await first;
  const startedAt = performance.now();
  await allStarted;
  await side.allEnded();
  return (performance.now() - startedAt) / 1000;
}
