/** The result of one torture row. */
export interface Finding {
  /** Measured numbers. */
  seen: Record<string, number>;
  /** Broken promises, with enough detail to investigate. Must be empty. */
  broken: string[];
  /** Exceeded time limits. They hold only on an idle machine, so `npm test` ignores them. */
  late: string[];
}

export type EngineName = "sqlite" | "postgres";

export interface Tools {
  /** The project's root directory. */
  root: string;
  /** The bundle of test/fixtures/torture/host.ts. */
  host: string;
  /** The bundle of test/fixtures/e2e/exec-many.ts. */
  execMany: string;
  /** The database engine for a testbed's record. */
  engine: EngineName;
  /** Creates an empty database on a real server, for a testbed on PostgreSQL. */
  openDatabase: () => Promise<Database>;
  /** Whether the process that makes the load gives way to those it measures. */
  lowersPriority?: true;
  /** Prints progress now and then. */
  progress: (text: string) => void;
}

export interface Database {
  url: string;
  drop(): Promise<void>;
}

/** Like Math.max, which overflows the stack with a hundred thousand arguments. */
export function largest(numbers: Iterable<number>): number {
  let most = 0;
  for (const number of numbers) most = Math.max(most, number);
  return most;
}

/** The value that `share` of the numbers do not exceed, or 0 if there are none. */
export function percentile(numbers: readonly number[], share: number): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}
