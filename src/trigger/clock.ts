/** The clock that slots are judged by. Passed in, so that tests can run it faster and make it jump. */
export interface TriggerClock {
  /** Milliseconds since 1970. */
  now(): number;
  /** Resolves after so many milliseconds of this clock or earlier, and when the signal aborts. Never rejects. */
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

/** A clock that jumps, and a host that slept, are noticed after this long. */
const longestWaitMs = 10_000;

/** `speed` times as fast as real time since `from`, a moment that all coordinators agree on. */
export function createTriggerClock(now: () => Date, { speed, from } = { speed: 1, from: 0 }): TriggerClock {
  return {
    now: () => from + (now().getTime() - from) * speed,
    wait: (ms, signal) =>
      new Promise((resolve) => {
        if (signal.aborted) return resolve();
        const timer = setTimeout(done, Math.min(ms / speed, longestWaitMs));
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
