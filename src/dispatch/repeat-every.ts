export interface Repeating {
  /** Aborts the signal of a call in progress and resolves when it has ended. */
  stop(): Promise<void>;
}

/** Calls `task` repeatedly, first after `firstMs`, then `ms` after each call ends. A failure is reported, and calls continue. */
export function repeatEvery(
  ms: number,
  task: (signal: AbortSignal) => Promise<unknown>,
  onFault: (error: unknown) => void,
  firstMs = ms,
): Repeating {
  const stopping = new AbortController();
  let timer: NodeJS.Timeout | null = null;
  let currentCall: Promise<void> = Promise.resolve();
  schedule(firstMs);
  return {
    async stop() {
      stopping.abort();
      if (timer !== null) clearTimeout(timer);
      await currentCall;
    },
  };

  function schedule(pauseMs: number): void {
    if (stopping.signal.aborted) return;
    timer = setTimeout(() => {
      currentCall = task(stopping.signal)
        .then(undefined, onFault)
        .then(() => schedule(ms));
    }, pauseMs);
    timer.unref();
  }
}
