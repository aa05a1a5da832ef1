import { setTimeout as pause } from "node:timers/promises";
import { runRounds, rotate, median } from "../rounds.ts";
import { addSample, percentile, printComparison, type Rounds } from "./figures.ts";

/** A variant of submitting and waiting for a moment. */
export interface StartVariant {
  name: string;
  label: string;
  durability: string;
  submit(id: string): Promise<void>;
  /** The moment in nanoseconds of process.hrtime. Called while the submit is in flight. */
  reached(id: string): Promise<bigint>;
}

interface Options {
  title: string;
  rounds: number;
  /** No round starts after this time. */
  seconds: number;
  samples: number;
  goal?: string;
}

/** Measures one submit at a time on an idle system, from just before the request. The first variant is Drover. */
export async function measureSubmitToStart(variants: readonly StartVariant[], options: Options): Promise<void> {
  const { title, rounds, seconds, samples, goal } = options;
  const medians: Rounds = new Map();
  const tails: Rounds = new Map();
  const completedRounds = await runRounds(rounds, seconds, async (round) => {
    for (const variant of rotate(variants, round)) {
      const durations: number[] = [];
      for (let sample = 0; sample < (round < 0 ? 50 : samples); sample++) durations.push(await once(variant));
      if (round < 0) continue;
      addSample(medians, variant.name, median(durations));
      addSample(tails, variant.name, percentile(durations, 0.99));
    }
  });
  const [droverVariant, ...peers] = variants;
  printComparison(`${title}, one at a time, ${samples} in each of ${completedRounds} rounds`, [droverVariant!], peers, [
    { title: "p50", values: medians, ...(goal ? { goal } : {}) },
    { title: "p99", values: tails },
  ]);
}

async function once({ name, submit, reached }: StartVariant): Promise<number> {
  const startedAt = process.hrtime.bigint();
  const id = `${name}-${startedAt}`;
  const answered = submit(id);
  const duration = Number((await reached(id)) - startedAt) / 1e6;
  await answered;
  // Let the work after a start finish before the next submit.
  await pause(20);
  return duration;
}
