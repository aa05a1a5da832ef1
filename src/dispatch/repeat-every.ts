export interface Repeating {
  /** Aborts the signal of a call in progress and resolves when it has ended. */
  stop(): Promise<void>;
}

/** Calls `turn` repeatedly, first after `firstMs`, then `ms` after each call ends. A failure is reported, and calls continue. */
export function repeatEvery(
  ms: number,
  turn: (signal: AbortSignal) => Promise<unknown>,
  onFault: (fault: unknown) => void,
  firstMs = ms,
): Repeating {
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | null = null;
  let underWay: Promise<void> = Promise.resolve();
  plan(firstMs);
  return {
    async stop() {
      stopping.abort();
      if (timer !== null) clearTimeout(timer);
      await underWay;
    },
  };

  function plan(pauseMs: number): void {
    if (stopping.signal.aborted) return;
    timer = setTimeout(() => {
      underWay = turn(stopping.signal)
        .then(undefined, onFault)
        .then(() => plan(ms));
    }, pauseMs);
    timer.unref();
  }
}
