import { monotonicMs } from "../../model/clock.ts";
import { isBusy, stillLocked } from "./faults.ts";

/**
 * SQLite's own busy_timeout sleeps inside the call, which stops the whole process and lets others
 * starve. We ask again instead, after short random delays, and give up in the end.
 */
export async function patiently<T>(attempt: () => T, file: string, waitMs: number): Promise<T> {
  const deadline = monotonicMs() + waitMs;
  for (;;) {
    try {
      return attempt();
    } catch (fault) {
      if (!isBusy(fault)) throw fault;
      if (monotonicMs() >= deadline) throw stillLocked(file, waitMs, fault);
    }
    await shortDelay();
  }
}

function shortDelay(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, randomDelayMs());
  });
}

/** Random, so that two waiting processes do not meet again at every try. */
export function randomDelayMs(): number {
  return 1 + Math.random() * 4;
}
