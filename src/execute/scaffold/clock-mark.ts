import { stat, utimes } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";

/**
 * A moment on the clock that the kernel stamps files with: what was written before has an earlier change time,
 * what is written from now on has this one or a later. That clock goes in steps of some milliseconds, so the
 * beginning of a step is waited for. It is read from the folder itself: a file made for it would count against the
 * run's limits.
 */
export async function clockMark(folder: string): Promise<bigint> {
  const read = async (): Promise<bigint> => {
    const now = new Date();
    await utimes(folder, now, now);
    return (await stat(folder, { bigint: true })).ctimeNs;
  };
  const first = await read();
  for (;;) {
    const mark = await read();
    if (mark !== first) return mark;
    await pause(1);
  }
}
