export interface Repeating {
  /** Resolves when a turn that is under way has ended, which hears of it by its signal. */
  stop(): Promise<void>;
}

/** One turn after the other, the first after `firstMs`, with a pause of `ms` between them; a failed turn is told, and the next one still comes. */
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
