/** The submitting half of Drover or of a peer queue. */
export interface Intake {
  name: string;
  /** The name to print, with its version. */
  label: string;
  /** Whether a run is durable once its submit is answered. */
  durability: string;
  /** Opens callers that each have one submit in flight. They share what such callers share in practice. */
  callers(count: number): Promise<Caller[]>;
  /** Submits all in one call; null if not supported. */
  batch: ((runs: number) => Promise<void>) | null;
  close(): Promise<void>;
}

export interface Caller {
  submit(id: string): Promise<void>;
  end(): void;
}

/** An intake with a worker in a separate process that handles 10 jobs at a time. */
export interface Side extends Intake {
  /** A submit with the lowest start latency, if it differs from a normal submit. */
  submitSoon?(id: string): Promise<void>;
  /** Starts no further jobs until `resume`. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  /** Resolves when the end of every started job is stored. */
  allEnded(): Promise<void>;
  /** User and system time so far of all its processes except the submitter. */
  cpuMs(): number;
}

/** Callers that share the submitting process. */
export function createSharedCallers(submit: (id: string) => Promise<void>): Intake["callers"] {
  return async (count) => Array.from({ length: count }, () => ({ submit, end: () => undefined }));
}

/** The payload of each run or job. */
export const payload = (id: string): { id: string; message: string } => ({ id, message: "Hello World" });

/** Submits `runs` with `count` callers. */
export async function submitAll(intake: Intake, count: number, runs: number): Promise<void> {
  let remaining = runs;
  await withCallers(intake, count, async ({ submit }) => {
    while (remaining-- > 0) await submit(`t${remaining}`);
  });
}

/** Returns submits per second. */
export async function submitFor(intake: Intake, count: number, seconds: number): Promise<number> {
  let submitted = 0;
  const duration = await withCallers(intake, count, async ({ submit }, began) => {
    while (performance.now() - began < seconds * 1000) await submit(`t${submitted++}`);
  });
  return submitted / duration;
}

/** Returns the seconds from the first submit to the last answer. */
async function withCallers(
  intake: Intake,
  count: number,
  call: (caller: Caller, began: number) => Promise<void>,
): Promise<number> {
  const callers = await intake.callers(count);
  const startedAt = performance.now();
  await Promise.all(callers.map((caller) => call(caller, startedAt)));
  const duration = (performance.now() - startedAt) / 1000;
  for (const { end } of callers) end();
  return duration;
}
