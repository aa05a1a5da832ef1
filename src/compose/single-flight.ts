/**
 * Creates a function that runs `work` once at a time. Callers that arrive while it runs share its result. Once all of them have aborted, the
 * work is aborted too.
 */
export function createSingleFlight<T>(work: (signal: AbortSignal) => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let current: Flight<T> | null = null;
  let lastEnd: Promise<unknown> = Promise.resolve();
  return async (signal) => {
    signal.throwIfAborted();
    const flight = (current ??= startFlight());
    flight.callers += 1;
    let onAbort = (): void => undefined;
    const aborted = new Promise<never>((_, reject) => {
      onAbort = () => reject(signal.reason);
      signal.addEventListener("abort", onAbort);
    });
    try {
      return await Promise.race([flight.result, aborted]);
    } finally {
      signal.removeEventListener("abort", onAbort);
      flight.callers -= 1;
      if (flight.callers === 0) {
        flight.controller.abort();
        if (current === flight) current = null;
      }
    }
  };

  function startFlight(): Flight<T> {
    const controller = new AbortController();
    // Wait for the previous flight: after its abort it may take a moment to end.
    const result = lastEnd.then(() => {
      controller.signal.throwIfAborted();
      return work(controller.signal);
    });
    lastEnd = result.catch(() => undefined); // The callers receive the error.
    return { result, callers: 0, controller };
  }
}

interface Flight<T> {
  result: Promise<T>;
  callers: number;
  controller: AbortController;
}
