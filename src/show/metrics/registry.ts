import { createHistogram, type Histogram } from "./histogram.ts";
import { keysOf, labelText } from "./labels.ts";

/** What is counted, measured and asked for, in the text format that Prometheus reads. */
export interface Registry {
  /** `labels` are names; their values come with each `add`. Without any it begins at 0. */
  counter(name: string, help: string, labels?: readonly string[]): Counter;
  /** `bounds` are the upper ends of its buckets, in rising order. */
  histogram(name: string, help: string, bounds: readonly number[], labels?: readonly string[]): Histogram;
  /** What costs something to know: read each time somebody wants to see it. Where it cannot be read it has no samples. */
  asked<const Name extends string>(families: Readonly<Record<Name, Family>>, read: () => Readings<Name>): void;
  write(): Promise<string>;
}

export interface Counter {
  /** 0 makes the series known, so that its first rise is seen as one. */
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

/** `onFault` is told of what could not be read. */
export function createRegistry(onFault: (fault: unknown) => void): Registry {
  const names = new Set<string>();
  const writers: (() => Promise<string>)[] = [];

  return {
    counter(name, help, labels = []) {
      begin(name);
      const series = new Map<string, number>();
      if (labels.length === 0) series.set("", 0);
      writers.push(async () => familyText(name, "counter", help, counterLines(name, series)));
      const keyOf = keysOf(labels);
      return {
        add(by, ...values) {
          const key = keyOf(values);
          series.set(key, (series.get(key) ?? 0) + by);
        },
      };
    },
    histogram(name, help, bounds, labels = []) {
      begin(name);
      const histogram = createHistogram(name, bounds, labels);
      writers.push(async () => familyText(name, "histogram", help, histogram.lines()));
      return histogram;
    },
    asked(families, read) {
      // The names of an object are its own keys.
      const given = Object.entries(families) as [keyof typeof families, Family][];
      for (const [name] of given) begin(name);
      writers.push(async () => {
        const reading = await readOrTell(read);
        const texts = given.map(([name, { type, help }]) =>
          familyText(name, type, help, reading === null ? [] : sampleLines(name, reading[name])),
        );
        return texts.join("");
      });
    },
    async write() {
      return (await Promise.all(writers.map((write) => write()))).join("");
    },
  };

  function begin(name: string): void {
    if (names.has(name)) throw new Error(`${name} is there twice`);
    names.add(name);
  }

  async function readOrTell<Name extends string>(read: () => Readings<Name>): Promise<Reading<Name> | null> {
    try {
      return await read();
    } catch (fault) {
      onFault(fault);
      return null;
    }
  }
}

function counterLines(name: string, series: ReadonlyMap<string, number>): string[] {
  return [...series].map(([key, value]) => `${name}${key} ${value}`);
}

function sampleLines(name: string, reading: number | readonly Sample[]): string[] {
  if (typeof reading === "number") return [`${name} ${reading}`];
  return reading.map(({ labels, value }) => `${name}${labelText(Object.entries(labels))} ${value}`);
}

function familyText(name: string, type: string, help: string, lines: readonly string[]): string {
  return `${[`# HELP ${name} ${help}`, `# TYPE ${name} ${type}`, ...lines].join("\n")}\n`;
}
