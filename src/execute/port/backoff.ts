export interface Backoff {
  /** Waits longer each time, with jitter so that many runners do not reconnect at the same moment. */
  wait(signal: AbortSignal): Promise<void>;
  reset(): void;
}

export function createBackoff({
  firstMs,
  maxMs,
  random,
}: {
  firstMs: number;
  maxMs: number;
  random: () => number;
}): Backoff {
  let pauseMs = firstMs;
  return {
    async wait(signal) {
      const ms = pauseMs * (0.5 + random() / 2);
      pauseMs = Math.min(pauseMs * 2, maxMs);
      await sleep(ms, signal);
    },
    reset() {
      pauseMs = firstMs;
    },
  };
}

/** Resolves early when the signal is aborted. Never rejects. */
export function sleep(ms: number, signal: AbortSignal): Promise<void> {
  if (signal.aborted) return Promise.resolve();
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener("abort", finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener("abort", finish, { once: true });
  });
}
