import { setTimeout as pause } from "node:timers/promises";
import { HostError } from "../model/errors.ts";

const retryForMs = 30_000;
const firstPauseMs = 100;
const maxPauseMs = 2000;

/**
 * Retries an idempotent request for up to 30 s, with backoff. The coordinator may be restarting, or another one of its
 * fleet may respond to the next attempt. Calls `onUnavailable` before the first retry.
 */
export async function withRetries<T>(
  request: () => Promise<T>,
  onUnavailable: () => void = () => undefined,
): Promise<T> {
  const deadline = performance.now() + retryForMs;
  for (let pauseMs = firstPauseMs, isReported = false; ; pauseMs = Math.min(2 * pauseMs, maxPauseMs)) {
    try {
      return await request();
    } catch (error) {
      if (!isUnavailable(error) || performance.now() + pauseMs > deadline) throw error;
      if (!isReported) onUnavailable();
      isReported = true;
    }
    await pause(pauseMs);
  }
}

/** Whether there was no response, or a proxy or coordinator could not reach its backend. */
function isUnavailable(error: unknown): boolean {
  if (!(error instanceof HostError)) return false;
  const { code, cause } = error;
  const status: unknown = typeof cause === "object" && cause !== null ? Reflect.get(cause, "status") : null;
  return code === "DROVER-API-023" || status === 502 || status === 503 || status === 504;
}
