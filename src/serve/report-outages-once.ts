import { HostError } from "../model/errors.ts";

export type Tell = (error: unknown, where: string) => void;

interface Options {
  tell: Tell;
  /** Whether the record can be used. */
  isBack(): Promise<boolean>;
  /** How long nothing has failed before an outage counts as over. */
  quietMs?: number;
  everyMs?: number;
}

/**
 * While the record is away everything that wants something of it fails, many times a second. Each code is told once until
 * the record is back; defects are told each time.
 */
export function reportOutagesOnce({ tell, isBack, quietMs = 3000, everyMs = 1000 }: Options): {
  tell: Tell;
  stop(): void;
} {
  const told = new Set<string>();
  let untold = 0;
  let lastAt = 0;
  let timer: NodeJS.Timeout | null = null;
  return {
    tell(error, where) {
      if (!(error instanceof HostError)) return tell(error, where);
      lastAt = performance.now();
      timer ??= setInterval(() => void look(), everyMs).unref();
      if (told.has(error.code)) untold += 1;
      else {
        told.add(error.code);
        tell(error, where);
      }
    },
    stop,
  };

  async function look(): Promise<void> {
    if (performance.now() - lastAt < quietMs || !(await isBack()) || timer === null) return;
    stop();
    tell(`The record answers again; ${untold} more faults of this outage were not told.`, "record");
    told.clear();
    untold = 0;
  }

  function stop(): void {
    if (timer !== null) clearInterval(timer);
    timer = null;
  }
}
