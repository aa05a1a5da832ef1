/** The clock of schedules. Passed in, so that tests can make it run faster and jump. */
export interface TriggerClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after at most this many milliseconds of this clock, or when the signal aborts. Never rejects. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/** A clock jump or a host that was suspended is noticed within this time. */
const maxWaitMs = 10_000;

/** A clock that runs `speed` times as fast as real time since `from`, a moment that all coordinators agree on. */
export function createTriggerClock(now: () => Date, { speed, from } = { speed: 1, from: 0 }): TriggerClock {
  return {
    now: () => from + (now().getTime() - from) * speed,
    wait: (ms, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        const timer = setTimeout(done, Math.min(ms / speed, maxWaitMs));
        timer.unref();
        signal.addEventListener("abort", done, { once: true });

        function done(): void {
          clearTimeout(timer);
          signal.removeEventListener("abort", done);
          resolve();
        }
      }),
  };
}
