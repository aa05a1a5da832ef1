/** What one torture found. */
export interface Finding {
  /** Numbers as they were seen. */
  seen: Record<string, number>;
  /** Each a promise that was broken, told so that it can be looked into. None may be. */
  broken: string[];
  /** Times that were not kept: promised for a machine that is not busy with other things, and not judged by `npm test`. */
  late: string[];
}

export interface Tools {
  /** Of this project. */
  root: string;
  /** The bundle of test/fixtures/torture/host.ts. */
  host: string;
  /** The bundle of test/fixtures/e2e/exec-many.ts. */
  execMany: string;
  /** Told now and then, for whoever watches. */
  progress: (text: string) => void;
}

/** The largest of many: a call with a hundred thousand arguments overflows the stack. */
export function largest(numbers: Iterable<number>): number {
  let most = 0;
  for (const number of numbers) most = Math.max(most, number);
  return most;
}
