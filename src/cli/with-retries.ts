import { setTimeout as pause } from "node:timers/promises";
import { HostError } from "../model/errors.ts";

const longestMs = 30_000;
const firstPauseMs = 100;
const longestPauseMs = 2000;

/**
 * For what may be asked twice, of a coordinator that has answered before: it may be restarting, or another one of its
 * fleet answers next time. `onAway` is called once.
 */
export async function withRetries<T>(ask: () => Promise<T>, onAway: () => void = () => undefined): Promise<T> {
  const until = performance.now() + longestMs;
  for (let pauseMs = firstPauseMs, told = false; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      return await ask();
    } catch (error) {
      if (!isAway(error) || performance.now() + pauseMs > until) throw error;
      if (!told) onAway();
      told = true;
    }
    await pause(pauseMs);
  }
}

/** Nobody answered; or who did could not reach the record, or the coordinator behind it. */
function isAway(error: unknown): boolean {
  if (!(error instanceof HostError)) return false;
  const { code, cause } = error;
  const status: unknown = typeof cause === "object" && cause !== null ? Reflect.get(cause, "status") : null;
  return code === "DROVER-API-023" || status === 502 || status === 503 || status === 504;
}
