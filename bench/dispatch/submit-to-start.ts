import { setTimeout as pause } from "node:timers/promises";
import { median } from "../rounds.ts";
import { addTo, percentile, printAgainst, type Rounds } from "./figures.ts";

/** One way from a submit to the moment that is waited for. */
export interface StartWay {
  name: string;
  label: string;
  durability: string;
  submit(id: string): Promise<void>;
  /** In nanoseconds of process.hrtime; asked for once the submit is under way. */
  reached(id: string): Promise<bigint>;
}

interface Options {
  title: string;
  rounds: number;
  samples: number;
  goal?: string;
}

/** One at a time on an idle system, from before the request. The first way is ours. */
export async function submitToStart(ways: readonly StartWay[], options: Options): Promise<void> {
  const { title, rounds, samples, goal } = options;
  const medians: Rounds = new Map();
  const tails: Rounds = new Map();
  const once = sampler();
  for (const way of ways) for (let warm = 0; warm < 50; warm++) await once(way);
  for (let round = 0; round < rounds; round++) {
    for (let at = 0; at < ways.length; at++) {
      const way = ways[(at + round) % ways.length]!;
      const took: number[] = [];
      for (let sample = 0; sample < samples; sample++) took.push(await once(way));
      addTo(medians, way.name, median(took));
      addTo(tails, way.name, percentile(took, 0.99));
    }
  }
  const [ours, ...peers] = ways;
  printAgainst(
    `${title}, one at a time, ${samples} a round`,
    [ours!],
    peers,
    [
      { title: "p50", values: medians, ...(goal ? { goal } : {}) },
      { title: "p99", values: tails },
    ],
  );
}

function sampler(): (way: StartWay) => Promise<number> {
  let count = 0;
  return async ({ name, submit, reached }) => {
    const id = `${name}-${count++}`;
    const began = process.hrtime.bigint();
    const answered = submit(id);
    const took = Number((await reached(id)) - began) / 1e6;
    await answered;
    // what follows a start is not to be met by the next submit
    await pause(20);
    return took;
  };
}
