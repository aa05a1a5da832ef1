import { createHistogram, type Histogram } from "./histogram.ts";
import { createLabelFormatter, formatLabels } from "./labels.ts";

/** The metrics of this process. `render` returns them in the Prometheus text format. */
export interface Registry {
  /** `labels` are names; each `add` gives their values. A counter without labels starts at 0. */
  addCounter(name: string, help: string, labels?: readonly string[]): Counter;
  /** `bounds` are the upper bounds of its buckets, in ascending order. */
  addHistogram(name: string, help: string, bounds: readonly number[], labels?: readonly string[]): Histogram;
  /** Registers metrics that are read on each scrape. If reading fails, they have no samples. */
  collect<const Name extends string>(families: Readonly<Record<Name, Family>>, read: () => Readings<Name>): void;
  render(): Promise<string>;
}

export interface Counter {
  /** Adding 0 creates the series, so that its first increase is visible. */
  add(by: number, ...labels: string[]): void;
}

export interface Family {
  type: "gauge" | "counter";
  help: string;
}

export interface Sample {
  labels: Readonly<Record<string, string>>;
  value: number;
}

type Reading<Name extends string> = Readonly<Record<Name, number | readonly Sample[]>>;
type Readings<Name extends string> = Reading<Name> | Promise<Reading<Name>>;

/** `onError` is called when metrics could not be read. */
export function createRegistry(onError: (error: unknown) => void): Registry {
  const names = new Set<string>();
  const renderers: (() => Promise<string>)[] = [];

  return {
    addCounter(name, help, labels = []) {
      register(name);
      const series = new Map<string, number>();
      if (labels.length === 0) series.set("", 0);
      renderers.push(async () => formatFamily(name, "counter", help, formatCounter(name, series)));
      const formatKey = createLabelFormatter(labels);
      return {
        add(by, ...values) {
          const key = formatKey(values);
          series.set(key, (series.get(key) ?? 0) + by);
        },
      };
    },
    addHistogram(name, help, bounds, labels = []) {
      register(name);
      const histogram = createHistogram(name, bounds, labels);
      renderers.push(async () => formatFamily(name, "histogram", help, histogram.formatLines()));
      return histogram;
    },
    collect(families, read) {
      // Object.entries loses the type of the keys.
      const entries = Object.entries(families) as [keyof typeof families, Family][];
      for (const [name] of entries) register(name);
      renderers.push(async () => {
        const reading = await readOrReport(read);
        const texts = entries.map(([name, { type, help }]) =>
          formatFamily(name, type, help, reading === null ? [] : formatSamples(name, reading[name])),
        );
        return texts.join("");
      });
    },
    async render() {
      return (await Promise.all(renderers.map((render) => render()))).join("");
    },
  };

  function register(name: string): void {
    if (names.has(name)) throw new Error(`metric ${name} is already registered`);
    names.add(name);
  }

  async function readOrReport<Name extends string>(read: () => Readings<Name>): Promise<Reading<Name> | null> {
    try {
      return await read();
    } catch (error) {
      onError(error);
      return null;
    }
  }
}

function formatCounter(name: string, series: ReadonlyMap<string, number>): string[] {
  return [...series].map(([key, value]) => `${name}${key} ${value}`);
}

function formatSamples(name: string, reading: number | readonly Sample[]): string[] {
  if (typeof reading === "number") return [`${name} ${reading}`];
  return reading.map(({ labels, value }) => `${name}${formatLabels(Object.entries(labels))} ${value}`);
}

function formatFamily(name: string, type: string, help: string, lines: readonly string[]): string {
  return `${[`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines].join("\n")}\n`;
}
