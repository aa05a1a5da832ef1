import { recordSilent } from "./record-deadline.ts";

export interface RecordProbe {
  /** Why the record cannot be used at the moment; null if it can. Resolves within `timeoutMs`. */
  findError(): Promise<unknown>;
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
  let lastResult: { at: number; error: unknown } | null = null;
  let running: { since: number; done: Promise<void> } | null = null;
  return {
    async findError() {
      if (running === null && lastResult !== null && performance.now() - lastResult.at < freshMs)
        return lastResult.error;
      running ??= start();
      await waitAtMost(timeoutMs - (performance.now() - running.since), running.done);
      // If the probe is still running, the previous result is too old to use.
      return running === null ? (lastResult?.error ?? null) : recordSilent(timeoutMs);
    },
  };

  function start(): NonNullable<typeof running> {
    const settle = (error: unknown): void => {
      lastResult = { at: performance.now(), error };
      running = null;
    };
    return { since: performance.now(), done: probe().then(() => settle(null), settle) };
  }
}

async function waitAtMost(ms: number, done: Promise<void>): Promise<void> {
  if (ms <= 0) return;
  let timer: NodeJS.Timeout | undefined;
  const timeout = new Promise<void>((resolve) => (timer = setTimeout(resolve, ms)));
  await Promise.race([done, timeout]);
  clearTimeout(timer);
}
