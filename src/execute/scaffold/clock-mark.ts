import { stat, utimes } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";

/**
 * Returns the current time of the clock that the kernel uses for change times: files written earlier have an earlier
 * change time, files written from now on have this time or a later one. That clock advances in steps of a few
 * milliseconds, so wait for the next step. Read it from the directory itself, because a new file would count against
 * the run's limits.
 */
export async function readClockMark(directory: string): Promise<bigint> {
  const readClock = async (): Promise<bigint> => {
    const now = new Date();
    await utimes(directory, now, now);
    return (await stat(directory, { bigint: true })).ctimeNs;
  };
  const initial = await readClock();
  for (;;) {
    const mark = await readClock();
    if (mark !== initial) return mark;
    await pause(1);
  }
}
