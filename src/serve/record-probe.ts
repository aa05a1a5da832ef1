import { recordSilent } from "./record-deadline.ts";

export interface RecordProbe {
  /** Why the record cannot be used at the moment; null if it can. Resolves within `timeoutMs`. */
  fault(): Promise<unknown>;
}

interface Options {
  /** How long a result is cached. Limits how often the record is probed. */
  freshMs?: number;
  /** A record that does not respond within this time counts as unusable. */
  timeoutMs?: number;
}

/** Caches the state of the record. Probes it on demand, one probe at a time. */
export function createRecordProbe(
  probe: () => Promise<unknown>,
  { freshMs = 1000, timeoutMs = 2000 }: Options = {},
): RecordProbe {
  let known: { at: number; fault: unknown } | null = null;
  let running: { since: number; done: Promise<void> } | null = null;
  return {
    async fault() {
      if (running === null && known !== null && performance.now() - known.at < freshMs) return known.fault;
      running ??= start();
      await atMost(timeoutMs - (performance.now() - running.since), running.done);
      // If the probe is still running, the previous result is too old to use.
      return running === null ? (known?.fault ?? null) : recordSilent(timeoutMs);
    },
  };

  function start(): NonNullable<typeof running> {
    const settle = (fault: unknown): void => {
      known = { at: performance.now(), fault };
      running = null;
    };
    return { since: performance.now(), done: probe().then(() => settle(null), settle) };
  }
}

async function atMost(ms: number, done: Promise<void>): Promise<void> {
  if (ms <= 0) return;
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([done, over]);
  clearTimeout(timer);
}
