import { median, formatMs, printTable, computeRatio, formatTimes } from "../rounds.ts";

/** For each variant, one number per round. */
export type Rounds = Map<string, number[]>;

export function addSample(rounds: Rounds, name: string, value: number): void {
  const values = rounds.get(name);
  if (values === undefined) rounds.set(name, [value]);
  else values.push(value);
}

export function percentile(samples: readonly number[], part: number): number {
  const sorted = samples.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] ?? Number.NaN;
}

export const formatRate = (value: number): string => `${Math.round(value).toLocaleString("en")}/s`;

/** The median of the rounds with minimum and maximum. */
export function formatSpread(values: readonly number[], show: (value: number) => string = formatMs): string {
  return `${show(median(values))} (${show(Math.min(...values))}-${show(Math.max(...values))})`;
}

interface Variant {
  name: string;
  label: string;
  durability: string;
}

interface Column {
  title: string;
  values: Rounds;
  show?: (value: number) => string;
  /** The goal for Drover's ratio to a peer. */
  goal?: string;
}

/** Prints a row per variant. A peer's row shows Drover's ratio to it, computed round by round. */
export function printComparison(
  title: string,
  ours: readonly Variant[],
  peers: readonly Variant[],
  columns: readonly Column[],
): void {
  const ratioColumns = columns.flatMap((column) =>
    ours.map((own) => ({
      title: `${ours.length > 1 ? own.label : "Drover"} against it${columns.length > 1 ? `, ${column.title}` : ""}`,
      goal: column.goal,
      cell: (peer: Variant) => formatTimes(computeRatio(column.values, own.name, peer.name)),
    })),
  );
  const row = (item: Variant, ratios: string[]): string[] => [
    item.label,
    item.durability,
    ...columns.map(({ values, show }) => formatSpread(values.get(item.name)!, show)),
    ...ratios,
  ];
  printTable(
    title,
    [
      "what",
      "durable",
      ...columns.map((column) => `${column.title} (spread)`),
      ...(peers.length > 0 ? ratioColumns : []).map((item) =>
        item.goal ? `${item.title} (goal ${item.goal})` : item.title,
      ),
    ],
    [
      ...ours.map((own) => row(own, peers.length > 0 ? ratioColumns.map(() => "") : [])),
      ...peers.map((peer) =>
        row(
          peer,
          ratioColumns.map(({ cell }) => cell(peer)),
        ),
      ),
    ],
  );
}
