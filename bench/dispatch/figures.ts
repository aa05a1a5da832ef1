import { median, ms, printTable } from "../rounds.ts";

/** One number per round for each of several ways. */
export type Rounds = Map<string, number[]>;

export function addTo(rounds: Rounds, name: string, value: number): void {
  const values = rounds.get(name);
  if (values === undefined) rounds.set(name, [value]);
  else values.push(value);
}

export function percentile(samples: readonly number[], part: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN;
}

export const rate = (value: number): string => `${Math.round(value).toLocaleString("en")}/s`;

/** The median of the rounds with the least and the most of them. */
export function spread(values: readonly number[], show: (value: number) => string = ms): string {
  return `${show(median(values))} (${show(Math.min(...values))}-${show(Math.max(...values))})`;
}

export { printTable };
