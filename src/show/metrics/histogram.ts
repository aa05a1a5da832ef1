import { createLabelTexts } from "./labels.ts";

export interface Histogram {
  observe(value: number, ...labels: string[]): void;
}

interface Buckets {
  /** One count per bucket, not cumulative. The last bucket is for values above all bounds. */
  counts: number[];
  sum: number;
}

export function createHistogram(
  name: string,
  bounds: readonly number[],
  labels: readonly string[],
): Histogram & { lines(): string[] } {
  const series = new Map<string, Buckets>();
  const keyOf = createLabelTexts(labels);
  if (labels.length === 0) series.set("", empty());
  return {
    observe(value, ...values) {
      const key = keyOf(values);
      let buckets = series.get(key);
      if (buckets === undefined) series.set(key, (buckets = empty()));
      let at = 0;
      while (at < bounds.length && value > bounds[at]!) at += 1;
      buckets.counts[at]! += 1;
      buckets.sum += value;
    },
    lines: () => [...series].flatMap(([key, buckets]) => linesOf(key, buckets)),
  };

  function empty(): Buckets {
    return { counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 };
  }

  /** Prometheus buckets are cumulative: each includes all lower ones. */
  function linesOf(key: string, { counts, sum }: Buckets): string[] {
    let upTo = 0;
    const others = key === "" ? "{" : `${key.slice(0, -1)},`;
    const lines = counts.map((count, index) => {
      upTo += count;
      return `${name}_bucket${others}le="${bounds[index] ?? "+Inf"}"} ${upTo}`;
    });
    return [...lines, `${name}_sum${key} ${sum}`, `${name}_count${key} ${upTo}`];
  }
}
