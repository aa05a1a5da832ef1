/** Counters and gauges in the text format that Prometheus reads. */
export interface Metrics {
  count(name: string, labels?: Labels): void;
  /** Asked for at each scrape. */
  gauge(name: string, help: string, value: () => number | Promise<number> | Promise<Sample[]>): void;
  write(): Promise<string>;
}

export type Labels = Readonly<Record<string, string>>;
export interface Sample {
  labels: Labels;
  value: number;
}

/** `helps` names every counter: one that is not in it is a slip of ours. */
export function createMetrics<const Name extends string>(helps: Readonly<Record<Name, string>>): Metrics {
  const counters = new Map<string, Map<string, number>>();
  const gauges = new Map<string, { help: string; value: Parameters<Metrics["gauge"]>[2] }>();
  for (const name of Object.keys(helps)) counters.set(name, new Map());
  return {
    count(name, labels = {}) {
      const series = counters.get(name);
      if (!series) throw new Error(`no counter ${name}`);
      const key = labelText(labels);
      series.set(key, (series.get(key) ?? 0) + 1);
    },
    gauge(name, help, value) {
      gauges.set(name, { help, value });
    },
    async write() {
      const lines: string[] = [];
      for (const [name, series] of counters) {
        lines.push(`# HELP ${name} ${Reflect.get(helps, name)}`, `# TYPE ${name} counter`);
        for (const [labels, value] of series) lines.push(`${name}${labels} ${value}`);
      }
      for (const [name, { help, value }] of gauges) {
        lines.push(`# HELP ${name} ${help}`, `# TYPE ${name} gauge`);
        const now = await value();
        if (typeof now === "number") lines.push(`${name} ${now}`);
        else for (const sample of now) lines.push(`${name}${labelText(sample.labels)} ${sample.value}`);
      }
      return `${lines.join("\n")}\n`;
    },
  };
}

function labelText(labels: Labels): string {
  const parts = Object.entries(labels).map(
    ([name, value]) => `${name}="${value.replace(/[\\"]/g, "\\$&").replaceAll("\n", "\\n")}"`,
  );
  return parts.length === 0 ? "" : `{${parts.join(",")}}`;
}
