import { runRounds, rotate } from "../rounds.ts";
import { addSample, printComparison, formatRate, type Rounds } from "./figures.ts";
import { type Intake, submitFor } from "./side.ts";

interface Options {
  ours: readonly Intake[];
  peers: readonly Intake[];
  rounds: number;
  /** The goal for Drover's ratio to a peer. */
  goal?: string;
}

const measuredSeconds = 2;
const warmUpSeconds = 0.5;
const maxSeconds = 90;
const batchRuns = 1000;

/** Measures single submits per second at several numbers of concurrent callers, without workers. */
export async function measureSingleSubmits(options: Options): Promise<void> {
  for (const count of [32, 128])
    await measure(options, `Single submits, ${count} at once`, (intake, seconds) => submitFor(intake, count, seconds));
}

export function measureBatchSubmits(options: Options): Promise<void> {
  const title = `Batches of ${batchRuns.toLocaleString("en")}, one after the other`;
  return measure(options, title, async ({ batch }, seconds) => {
    const startedAt = performance.now();
    let submitted = 0;
    for (; performance.now() - startedAt < seconds * 1000; submitted += batchRuns) await batch?.(batchRuns);
    return submitted / ((performance.now() - startedAt) / 1000);
  });
}

async function measure(
  { ours, peers, rounds, goal }: Options,
  title: string,
  measureRate: (intake: Intake, seconds: number) => Promise<number>,
): Promise<void> {
  const values: Rounds = new Map();
  const completedRounds = await runRounds(rounds, maxSeconds, async (round) => {
    for (const intake of rotate([...ours, ...peers], round)) {
      const value = await measureRate(intake, round < 0 ? warmUpSeconds : measuredSeconds);
      if (round >= 0) addSample(values, intake.name, value);
    }
  });
  printComparison(`${title}, ${completedRounds} rounds`, ours, peers, [
    { title: "per second", values, show: formatRate, ...(goal ? { goal } : {}) },
  ]);
}
