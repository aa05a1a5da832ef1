import { HostError } from "../model/errors.ts";

export type Report = (error: unknown, where: string) => void;

interface Options {
  report: Report;
  /** Whether the record can be used. */
  isBack(): Promise<boolean>;
  /** An outage is over after this long without a failure. */
  quietMs?: number;
  everyMs?: number;
}

/**
 * While the record is unavailable, every operation that needs it fails, many times a second. Each error code is reported
 * once per outage. Other errors are always reported.
 */
export function reportOutagesOnce({ report, isBack, quietMs = 3000, everyMs = 1000 }: Options): {
  report: Report;
  stop(): void;
} {
  const reported = new Set<string>();
  let suppressed = 0;
  let lastAt = 0;
  let timer: NodeJS.Timeout | null = null;
  return {
    report(error, where) {
      if (!(error instanceof HostError)) return report(error, where);
      lastAt = performance.now();
      timer ??= setInterval(() => void check(), everyMs).unref();
      if (reported.has(error.code)) suppressed += 1;
      else {
        reported.add(error.code);
        report(error, where);
      }
    },
    stop,
  };

  async function check(): Promise<void> {
    if (performance.now() - lastAt < quietMs || !(await isBack()) || timer === null) return;
    stop();
    report(`The record is available again; ${suppressed} further errors during the outage were not logged.`, "record");
    reported.clear();
    suppressed = 0;
  }

  function stop(): void {
    if (timer !== null) clearInterval(timer);
    timer = null;
  }
}
