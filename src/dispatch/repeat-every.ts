export interface RepeatedTask {
  /** Aborts the signal of a call in progress and resolves when it has ended. */
  stop(): Promise<void>;
}

/** Calls `task` repeatedly, first after `firstMs`, then `ms` after each call ends. A failure is reported, and calls continue. */
export function repeatEvery(
  ms: number,
  task: (signal: AbortSignal) => Promise<unknown>,
  onError: (error: unknown) => void,
  firstMs = ms,
): RepeatedTask {
  const stopController = new AbortController();
  let timer: NodeJS.Timeout | null = null;
  let pendingCall: Promise<void> = Promise.resolve();
  schedule(firstMs);
  return {
    async stop() {
      stopController.abort();
      if (timer !== null) clearTimeout(timer);
      await pendingCall;
    },
  };

  function schedule(pauseMs: number): void {
    if (stopController.signal.aborted) return;
    timer = setTimeout(() => {
      pendingCall = task(stopController.signal)
        .then(undefined, onError)
        .then(() => schedule(ms));
    }, pauseMs);
    timer.unref();
  }
}
