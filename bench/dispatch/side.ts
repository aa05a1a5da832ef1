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
  /** A submit that is to be begun as soon as can be, where that is not the same. */
  submitSoon?(id: string): Promise<void>;
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

/** By so many callers. */
export async function submitAll(intake: Intake, count: number, runs: number): Promise<void> {
  let left = runs;
  await withCallers(intake, count, async ({ submit }) => {
    while (left-- > 0) await submit(`t${left}`);
  });
}

/** How many were taken each second. */
export async function submitFor(intake: Intake, count: number, seconds: number): Promise<number> {
  let taken = 0;
  const took = await withCallers(intake, count, async ({ submit }, began) => {
    while (performance.now() - began < seconds * 1000) await submit(`t${taken++}`);
  });
  return taken / took;
}

/** Seconds from the first submit to the last answer. */
async function withCallers(
  intake: Intake,
  count: number,
  call: (caller: Caller, began: number) => Promise<void>,
): Promise<number> {
  const callers = await intake.callers(count);
  const began = performance.now();
  await Promise.all(callers.map((caller) => call(caller, began)));
  const took = (performance.now() - began) / 1000;
  for (const { end } of callers) end();
  return took;
}
