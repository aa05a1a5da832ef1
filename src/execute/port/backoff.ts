export interface Backoff {
  /** Waits longer each time, with jitter, so that many runners do not come back as one. */
  wait(signal: AbortSignal): Promise<void>;
  reset(): void;
}

export function createBackoff({
  firstMs,
  longestMs,
  random,
}: {
  firstMs: number;
  longestMs: number;
  random: () => number;
}): Backoff {
  let next = firstMs;
  return {
    async wait(signal) {
      const ms = next * (0.5 + random() / 2);
      next = Math.min(next * 2, longestMs);
      await sleep(ms, signal);
    },
    reset() {
      next = firstMs;
    },
  };
}

/** Resolves early, and never rejects, when the signal is aborted. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener("abort", end, { once: true });
  });
}

/** Wakes who waits; a wake-up that nobody waits for is kept for the next who does. */
export interface Bell {
  ring(): void;
  /** Whoever rang up to now is being served. */
  reset(): void;
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

export function createBell(): Bell {
  let rung = false;
  let wake: (() => void) | null = null;
  return {
    ring() {
      rung = true;
      wake?.();
    },
    reset() {
      rung = false;
    },
    async wait(ms, signal) {
      if (!rung && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const end = (): void => {
            clearTimeout(timer);
            signal.removeEventListener("abort", end);
            resolve();
          };
          const timer = setTimeout(end, ms);
          wake = end;
          signal.addEventListener("abort", end, { once: true });
        });
        wake = null;
      }
      rung = false;
    },
  };
}
