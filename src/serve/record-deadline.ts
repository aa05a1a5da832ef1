import { HostError } from "../model/errors.ts";

/**
 * Gives consecutive operations `ms` in total. When the time is up, the current one rejects with DROVER-STA-010. The work
 * itself continues, so use this only for operations that are safe to repeat. `onLate` gets errors that occur afterwards.
 * Without `ms` there is no limit.
 */
export function createRecordDeadline(
  ms: number | undefined,
  onLate: (error: unknown) => void,
): <T>(work: Promise<T>) => Promise<T> {
  if (ms === undefined) return (work) => work;
  let remainingMs = ms;
  return async (work) => {
    const startedAt = performance.now();
    let timer: NodeJS.Timeout | null = null;
    let isLate = false;
    const deadline = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isLate = true;
        reject(recordSilent(ms));
      }, remainingMs);
    });
    work.catch((error: unknown) => {
      if (isLate) onLate(error);
    });
    try {
      return await Promise.race([work, deadline]);
    } finally {
      if (timer !== null) clearTimeout(timer);
      remainingMs -= performance.now() - startedAt;
    }
  };
}

export function recordSilent(ms: number): HostError {
  return new HostError({
    code: "DROVER-STA-010",
    message: `The record did not respond within ${ms} ms.`,
    next: "Check that the database responds and is not locked by another process. The request can be repeated.",
  });
}
