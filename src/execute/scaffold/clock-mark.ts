import { rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";

/**
 * A moment on the clock that the kernel stamps files with: what was written before has an earlier change time,
 * what is written from now on has this one or a later. That clock goes in steps of some milliseconds, so the
 * beginning of a step is waited for.
 */
export async function clockMark(folder: string): Promise<bigint> {
  const probe = join(folder, ".clock-mark");
  const read = async (): Promise<bigint> => {
    await rm(probe, { force: true });
    await writeFile(probe, "", { flag: "wx", mode: 0o600 });
    return (await stat(probe, { bigint: true })).ctimeNs;
  };
  try {
    const first = await read();
    for (;;) {
      const mark = await read();
      if (mark !== first) return mark;
      await pause(1);
    }
  } finally {
    await rm(probe, { force: true });
  }
}
