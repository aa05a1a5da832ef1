import { ms } from "../rounds.ts";
import { addTo, printAgainst, rate, type Rounds } from "./figures.ts";
import { type Side, submitAll } from "./side.ts";
import type { Told } from "./tell.ts";

const submitters = 32;

/** Runs that do nothing, 10 at a time, until the end of the last one is stored. The first side is ours. */
export async function throughput(sides: readonly Side[], told: Told, rounds: number, runs: number): Promise<void> {
  const both: Rounds = new Map();
  const backlog: Rounds = new Map();
  const cpu: Rounds = new Map();
  for (let round = -1; round < rounds; round++) {
    for (let at = 0; at < sides.length; at++) {
      const side = sides[(at + Math.max(0, round)) % sides.length]!;
      const many = round < 0 ? runs / 4 : runs;
      const before = side.cpuMs();
      const whole = await submitAndWorkOff(side, told, many);
      const used = side.cpuMs() - before;
      const worked = await workOff(side, told, many);
      if (round < 0) continue;
      addTo(cpu, side.name, used / many);
      addTo(both, side.name, many / whole);
      addTo(backlog, side.name, many / worked);
    }
  }
  const [ours, ...peers] = sides;
  const goal = ">= 1x, then 2x";
  printAgainst(`${runs} runs that do nothing, 10 slots, submitted by ${submitters} and worked off`, [ours!], peers, [
    { title: "each second", values: both, show: rate, goal },
  ]);
  printAgainst("The same from a backlog", [ours!], peers, [{ title: "each second", values: backlog, show: rate }]);
  printAgainst("The first of the two in CPU time of servers and workers, for each run", [ours!], peers, [
    { title: "CPU", values: cpu, show: ms },
  ]);
}

/** Seconds from the first submit to the last end. */
async function submitAndWorkOff(side: Side, told: Told, runs: number): Promise<number> {
  const callers = await side.callers(submitters);
  const began = performance.now();
  const started = told.more("S", runs);
  await submitAll(callers, runs);
  await started;
  await side.allEnded();
  const took = (performance.now() - began) / 1000;
  for (const { end } of callers) end();
  return took;
}

/** Seconds from the first start to the last end, all of them waiting before. */
async function workOff(side: Side, told: Told, runs: number): Promise<number> {
  await side.pause();
  const callers = await side.callers(submitters);
  await submitAll(callers, runs);
  for (const { end } of callers) end();
  const [first, all] = [told.more("S", 1), told.more("S", runs)];
  await side.resume();
  await first;
  const began = performance.now();
  await all;
  await side.allEnded();
  return (performance.now() - began) / 1000;
}
