import { setTimeout as pause } from "node:timers/promises";
import { HostError } from "../model/errors.ts";

const pauseMs = 500;

/**
 * Opens a record that may not be there yet: after a power cut database and coordinators start at the same time. What is
 * wrong with one that answers is said at once.
 */
export async function waitForDatabase<T>(
  open: () => Promise<T>,
  { waitMs, onAway }: { waitMs: number; onAway: (fault: HostError) => void },
): Promise<T> {
  const until = performance.now() + waitMs;
  for (let told = false; ; told = true) {
    try {
      return await open();
    } catch (fault) {
      if (!isAway(fault) || performance.now() + pauseMs > until) throw fault;
      if (!told) onAway(fault);
    }
    await pause(pauseMs);
  }
}

function isAway(fault: unknown): fault is HostError {
  return fault instanceof HostError && fault.code === "DROVER-STA-008";
}
