/** Drover, or a queue beside it, as one submits to it. */
export interface Intake {
  name: string;
  /** For people, with its version. */
  label: string;
  /** What is true of a run once its submit was answered. */
  durability: string;
  /** So many callers, each with one submit at a time: what they share is what callers of that kind share. */
  callers(count: number): Promise<Caller[]>;
  /** All in one go; null where there is no such thing. */
  batch: ((runs: number) => Promise<void>) | null;
  close(): Promise<void>;
}

export interface Caller {
  submit(id: string): Promise<void>;
  end(): void;
}

/** The same with somebody who works it off, 10 at a time, in a process of its own. */
export interface Side extends Intake {
  /** Nothing that is submitted is begun until `resume`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Resolves when the end of everything that was begun is stored. */
  allEnded(): Promise<void>;
  /** Of all its processes but the one that submits, user and system time so far. */
  cpuMs(): number;
}

/** For what is called in the process that submits. */
export function sharedCallers(submit: (id: string) => Promise<void>): Intake["callers"] {
  return async (count) => Array.from({ length: count }, () => ({ submit, end: () => undefined }));
}

/** What every side is given for each run or job. */
export const payload = (id: string): { id: string; message: string } => ({ id, message: "Hello World" });

/** Seconds that all of them together need for so many. */
export async function submitAll(callers: readonly Caller[], runs: number): Promise<number> {
  let left = runs;
  const began = performance.now();
  await Promise.all(
    callers.map(async ({ submit }) => {
      while (left-- > 0) await submit(`t${left}`);
    }),
  );
  return (performance.now() - began) / 1000;
}
