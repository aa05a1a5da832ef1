import { HostError } from "../model/errors.ts";

/**
 * So much time for all that it is given, one after the other: it gives what each gives, or, when the time is used up, the
 * word that the record does not answer. What was begun goes on, so only for what may be asked for again; `onLate` is told
 * how it failed after that. Without `ms` there is all the time there is.
 */
export function createRecordDeadline(
  ms: number | undefined,
  onLate: (fault: unknown) => void,
): <T>(work: Promise<T>) => Promise<T> {
  if (ms === undefined) return (work) => work;
  let left = ms;
  return async (work) => {
    const since = performance.now();
    let timer: NodeJS.Timeout | null = null;
    let isLate = false;
    const over = new Promise<never>((_, reject) => {
      timer = setTimeout(() => {
        isLate = true;
        reject(recordSilent(ms));
      }, left);
    });
    work.catch((fault: unknown) => {
      if (isLate) onLate(fault);
    });
    try {
      return await Promise.race([work, over]);
    } finally {
      if (timer !== null) clearTimeout(timer);
      left -= performance.now() - since;
    }
  };
}

export function recordSilent(ms: number): HostError {
  return new HostError({
    code: "DROVER-STA-010",
    message: `The record has not answered for ${ms} ms.`,
    next: "Check that the database answers and is not locked by something else. What was asked for can be asked for again.",
  });
}
