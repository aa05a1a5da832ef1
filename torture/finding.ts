/** What one torture found. */
export interface Finding {
  /** Numbers as they were seen. */
  seen: Record<string, number>;
  /** Each a promise that was broken, told so that it can be looked into. None may be. */
  broken: string[];
  /** Times that were not kept: promised for a machine that is not busy with other things, and not judged by `npm test`. */
  late: string[];
}

export type EngineName = "sqlite" | "postgres";

export interface Tools {
  /** Of this project. */
  root: string;
  /** The bundle of test/fixtures/torture/host.ts. */
  host: string;
  /** The bundle of test/fixtures/e2e/exec-many.ts. */
  execMany: string;
  /** Where the record of a place lies. */
  engine: EngineName;
  /** An empty database on a real server, for a place over PostgreSQL. */
  openDatabase: () => Promise<Database>;
  /** Told now and then, for whoever watches. */
  progress: (text: string) => void;
}

export interface Database {
  url: string;
  drop(): Promise<void>;
}

/** The largest of many: a call with a hundred thousand arguments overflows the stack. */
export function largest(numbers: Iterable<number>): number {
  let most = 0;
  for (const number of numbers) most = Math.max(most, number);
  return most;
}

/** `share` of them took at most so long; 0 where there are none. */
export function percentile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
