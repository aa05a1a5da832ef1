import { setTimeout as pause } from "node:timers/promises";
import { HostError } from "../model/errors.ts";

const retryForMs = 30_000;
const firstPauseMs = 100;
const longestPauseMs = 2000;

/**
 * Retries an idempotent request for up to 30 s, with backoff. The coordinator may be restarting, or another one of its
 * fleet may answer the next attempt. Calls `onUnavailable` before the first retry.
 */
export async function withRetries<T>(
  request: () => Promise<T>,
  onUnavailable: () => void = () => undefined,
): Promise<T> {
  const until = performance.now() + retryForMs;
  for (let pauseMs = firstPauseMs, notified = false; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      return await request();
    } catch (error) {
      if (!isUnavailable(error) || performance.now() + pauseMs > until) throw error;
      if (!notified) onUnavailable();
      notified = true;
    }
    await pause(pauseMs);
  }
}

/** Nothing answered, or a proxy or coordinator that could not reach what is behind it. */
function isUnavailable(error: unknown): boolean {
  if (!(error instanceof HostError)) return false;
  const { code, cause } = error;
  const status: unknown = typeof cause === "object" && cause !== null ? Reflect.get(cause, "status") : null;
  return code === "DROVER-API-023" || status === 502 || status === 503 || status === 504;
}
