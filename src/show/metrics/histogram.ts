import { createLabelFormatter } from "./labels.ts";

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
): Histogram & { formatLines(): string[] } {
  const series = new Map<string, Buckets>();
  const formatKey = createLabelFormatter(labels);
  if (labels.length === 0) series.set("", createBuckets());
  return {
    observe(value, ...values) {
      const key = formatKey(values);
      let buckets = series.get(key);
      if (buckets === undefined) series.set(key, (buckets = createBuckets()));
      let bucket = 0;
      while (bucket < bounds.length && value > bounds[bucket]!) bucket += 1;
      buckets.counts[bucket]! += 1;
      buckets.sum += value;
    },
    formatLines: () => [...series].flatMap(([key, buckets]) => formatSeries(key, buckets)),
  };

  function createBuckets(): Buckets {
    return { counts: Array.from({ length: bounds.length + 1 }, () => 0), sum: 0 };
  }

  /** Prometheus buckets are cumulative: each includes all lower ones. */
  function formatSeries(key: string, { counts, sum }: Buckets): string[] {
    let cumulative = 0;
    const labelStart = key === "" ? "{" : `${key.slice(0, -1)},`;
    const lines = counts.map((count, index) => {
      cumulative += count;
      return `${name}_bucket${labelStart}le="${bounds[index] ?? "+Inf"}"} ${cumulative}`;
    });
    return [...lines, `${name}_sum${key} ${sum}`, `${name}_count${key} ${cumulative}`];
  }
}
