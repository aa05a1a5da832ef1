import { addTo, printAgainst, rate, type Rounds } from "./figures.ts";
import { type Intake, submitAll } from "./side.ts";

/** Nobody works these off: what is measured is how many are taken each second, one by one, by so many callers at once. */
export async function singleSubmits(
  ours: readonly Intake[],
  peers: readonly Intake[],
  rounds: number,
  runs: number,
  goal: string,
): Promise<void> {
  for (const count of [32, 128]) {
    const taken = await inTurns([...ours, ...peers], rounds, async (intake, part) => {
      const callers = await intake.callers(count);
      const seconds = await submitAll(callers, runs * part);
      for (const { end } of callers) end();
      return (runs * part) / seconds;
    });
    printAgainst(`${runs} single submits, ${count} at once`, ours, peers, [
      { title: "each second", values: taken, show: rate, goal },
    ]);
  }
}

const batchRuns = 1000;

export async function batchSubmits(
  ours: readonly Intake[],
  peers: readonly Intake[],
  rounds: number,
  batches: number,
  goal: string,
): Promise<void> {
  const taken = await inTurns([...ours, ...peers], rounds, async ({ batch }) => {
    const began = performance.now();
    for (let no = 0; no < batches; no++) await batch?.(batchRuns);
    return (batches * batchRuns) / ((performance.now() - began) / 1000);
  });
  printAgainst(`Batches of ${batchRuns.toLocaleString("en")}, one after the other`, ours, peers, [
    { title: "each second", values: taken, show: rate, goal },
  ]);
}

/** A round for warming up, which asks for a part of it only, and is not counted. */
async function inTurns(
  intakes: readonly Intake[],
  rounds: number,
  measure: (intake: Intake, part: number) => Promise<number>,
): Promise<Rounds> {
  const values: Rounds = new Map();
  for (let round = -1; round < rounds; round++) {
    for (let at = 0; at < intakes.length; at++) {
      const intake = intakes[(at + Math.max(0, round)) % intakes.length]!;
      const value = await measure(intake, round < 0 ? 0.25 : 1);
      if (round >= 0) addTo(values, intake.name, value);
    }
  }
  return values;
}
