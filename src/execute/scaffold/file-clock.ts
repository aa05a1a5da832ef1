import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { setTimeout as pause } from "node:timers/promises";

/**
 * Returns the current time of the clock that the kernel uses for change times: files written earlier have an earlier
 * change time, files written from now on have this time or a later one. That clock advances in steps of a few
 * milliseconds, so this waits for the next step. It reads the clock from the directory itself, because a new file would count against
 * the run's limits.
 */
export async function readFileClock(directory: string): Promise<bigint> {
  const handle = await open(directory, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  const readClock = async (): Promise<bigint> => {
    const now = new Date();
    await handle.utimes(now, now);
    return (await handle.stat({ bigint: true })).ctimeNs;
  };
  try {
    const initial = await readClock();
    for (;;) {
      const current = await readClock();
      if (current !== initial) return current;
      await pause(1);
    }
  } finally {
    await handle.close();
  }
}
