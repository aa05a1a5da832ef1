/** One of several variants of the same work, measured in turn so that machine noise hits all of them. */
export interface Variant {
  name: string;
  once: () => Promise<void> | void;
}

export type Times = Map<string, number[]>;

/** In each round runs every variant `times` times, in an order that changes from round to round. */
export async function interleave(
  variants: readonly Variant[],
  rounds: number,
  times: number,
  clock = (): number => performance.now(),
): Promise<Times> {
  const result: Times = new Map(variants.map(({ name }) => [name, []]));
  for (const { once } of variants) await once();
  for (let round = 0; round < rounds; round++) {
    for (let index = 0; index < variants.length; index++) {
      const { name, once } = variants[(index + round) % variants.length]!;
      const samples: number[] = [];
      for (let time = 0; time < times; time++) {
        const startedAt = clock();
        await once();
        samples.push(clock() - startedAt);
      }
      result.get(name)!.push(median(samples));
    }
  }
  return result;
}

/**
 * Runs a warm-up round, numbered -1, and then the requested rounds, or fewer (at least one) if the time is up. Returns
 * the number of rounds that count.
 */
export async function runRounds(
  rounds: number,
  seconds: number,
  runRound: (round: number) => Promise<void>,
): Promise<number> {
  const end = performance.now() + seconds * 1000;
  for (let round = -1; ; round++) {
    if (round === rounds || (round > 0 && performance.now() > end)) return round;
    await runRound(round);
  }
}

/** Returns all items, starting with another one in each round. */
export function rotate<T>(all: readonly T[], round: number): T[] {
  const first = Math.max(0, round) % all.length;
  return [...all.slice(first), ...all.slice(0, first)];
}

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** The median ratio and its spread, computed round by round so that noise hits both sides. */
export function computeRatio(times: Times, ours: string, peer: string): { value: number; least: number; most: number } {
  const ratios = times.get(ours)!.map((time, round) => time / times.get(peer)![round]!);
  return { value: median(ratios), least: Math.min(...ratios), most: Math.max(...ratios) };
}

export function computeDifference(
  times: Times,
  ours: string,
  peer: string,
): { value: number; least: number; most: number } {
  const differences = times.get(ours)!.map((time, round) => time - times.get(peer)![round]!);
  return { value: median(differences), least: Math.min(...differences), most: Math.max(...differences) };
}

export function printTable(title: string, header: readonly string[], rows: readonly (readonly string[])[]): void {
  process.stdout.write(`\n### ${title}\n\n| ${header.join(" | ")} |\n|${header.map(() => "---").join("|")}|\n`);
  for (const row of rows) process.stdout.write(`| ${row.join(" | ")} |\n`);
}

export const formatMs = (value: number): string => `${value.toFixed(value < 10 ? 2 : 1)} ms`;
export const formatTimes = ({ value, least, most }: { value: number; least: number; most: number }): string =>
  `${value.toFixed(2)}x (${least.toFixed(2)}-${most.toFixed(2)})`;
export const formatAdded = ({ value, least, most }: { value: number; least: number; most: number }): string =>
  `${value >= 0 ? "+" : ""}${value.toFixed(2)} ms (${least.toFixed(2)} to ${most.toFixed(2)})`;
