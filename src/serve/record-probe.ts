import { recordSilent } from "./record-deadline.ts";

export interface RecordProbe {
  /** Why the record cannot be used now; null where it can. Never takes longer than its patience. */
  fault(): Promise<unknown>;
}

interface Options {
  /** For how long an answer holds: however many ask, the record is asked no more often. */
  freshMs?: number;
  /** After which a record that says nothing counts as one that cannot be used. */
  patienceMs?: number;
}

/** Remembers how the record is. It is looked at when somebody asks for it, one look at a time. */
export function createRecordProbe(
  look: () => Promise<unknown>,
  { freshMs = 1000, patienceMs = 2000 }: Options = {},
): RecordProbe {
  let known: { at: number; fault: unknown } | null = null;
  let looking: { since: number; done: Promise<void> } | null = null;
  return {
    async fault() {
      if (looking === null && known !== null && performance.now() - known.at < freshMs) return known.fault;
      looking ??= begin();
      await atMost(patienceMs - (performance.now() - looking.since), looking.done);
      // still under way: what was known before is too old to go by
      return looking === null ? (known?.fault ?? null) : recordSilent(patienceMs);
    },
  };

  function begin(): NonNullable<typeof looking> {
    const learn = (fault: unknown): void => {
      known = { at: performance.now(), fault };
      looking = null;
    };
    return { since: performance.now(), done: look().then(() => learn(null), learn) };
  }
}

async function atMost(ms: number, done: Promise<void>): Promise<void> {
  if (ms <= 0) return;
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([done, over]);
  clearTimeout(timer);
}
