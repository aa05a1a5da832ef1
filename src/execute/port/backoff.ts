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
