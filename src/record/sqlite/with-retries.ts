import { monotonicMs } from "../../model/clock.ts";
import { isBusy, createLockedError } from "./errors.ts";

/**
 * Retries while the database is locked. SQLite's own busy_timeout sleeps inside the call, which blocks the whole process
 * and can starve others. We retry after short random delays instead, and give up after `waitMs`.
 */
export async function withRetries<T>(attempt: () => T, file: string, waitMs: number): Promise<T> {
  const deadline = monotonicMs() + waitMs;
  for (;;) {
    try {
      return attempt();
    } catch (error) {
      if (!isBusy(error)) throw error;
      if (monotonicMs() >= deadline) throw createLockedError(file, waitMs, error);
    }
    await delayBriefly();
  }
}

function delayBriefly(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, randomDelayMs());
  });
}

/** Random, so that two waiting processes do not collide on every attempt. */
export function randomDelayMs(): number {
  return 1 + Math.random() * 4;
}
