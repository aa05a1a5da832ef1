import { HostError } from "../model/errors.ts";

export type ReportError = (error: unknown, where: string) => void;

interface Options {
  report: ReportError;
  /** Whether the record can be used. */
  isAvailable(): Promise<boolean>;
  /** An outage is over after this long without a failure. */
  quietMs?: number;
  everyMs?: number;
}

/**
 * While the record is unavailable, every operation that needs it fails, many times a second. Each error code is reported
 * once per outage. Other errors are always reported.
 */
export function reportOutagesOnce({ report, isAvailable, quietMs = 3000, everyMs = 1000 }: Options): {
  report: ReportError;
  stop(): void;
} {
  const reportedCodes = new Set<string>();
  let suppressedCount = 0;
  let lastAt = 0;
  let timer: NodeJS.Timeout | null = null;
  return {
    report(error, where) {
      if (!(error instanceof HostError)) return report(error, where);
      lastAt = performance.now();
      timer ??= setInterval(() => void check(), everyMs).unref();
      if (reportedCodes.has(error.code)) suppressedCount += 1;
      else {
        reportedCodes.add(error.code);
        report(error, where);
      }
    },
    stop,
  };

  async function check(): Promise<void> {
    if (performance.now() - lastAt < quietMs || !(await isAvailable()) || timer === null) return;
    stop();
    report(
      `The record is available again; ${suppressedCount} further errors during the outage were not logged.`,
      "record",
    );
    reportedCodes.clear();
    suppressedCount = 0;
  }

  function stop(): void {
    if (timer !== null) clearInterval(timer);
    timer = null;
  }
}
