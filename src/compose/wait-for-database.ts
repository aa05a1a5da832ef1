import { setTimeout as pause } from "node:timers/promises";
import { HostError } from "../model/errors.ts";

const retryMs = 500;

/**
 * Opens a record whose database may be unreachable: after a power failure, the database and the coordinators start at the
 * same time. Errors of a database that responds are thrown immediately.
 */
export async function waitForDatabase<T>(
  open: () => Promise<T>,
  { waitMs, onUnreachable }: { waitMs: number; onUnreachable: (error: HostError) => void },
): Promise<T> {
  const deadline = performance.now() + waitMs;
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await open();
    } catch (error) {
      if (!isUnreachable(error) || performance.now() + retryMs > deadline) throw error;
      if (isFirst) onUnreachable(error);
    }
    await pause(retryMs);
  }
}

function isUnreachable(error: unknown): error is HostError {
  return error instanceof HostError && error.code === "DROVER-STA-008";
}
