/** One at a time: whoever asks meanwhile waits for the same. It is given up once nobody waits for it any more. */
export function singleFlight<T>(work: (signal: AbortSignal) => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let current: { result: Promise<T>; waiting: number; giveUp: AbortController } | null = null;
  let last: Promise<unknown> = Promise.resolve();
  return async (signal) => {
    signal.throwIfAborted();
    const joined = (current ??= begin());
    joined.waiting += 1;
    let leave = (): void => undefined;
    const left = new Promise<never>((_, reject) => {
      leave = () => reject(signal.reason);
      signal.addEventListener("abort", leave);
    });
    try {
      return await Promise.race([joined.result, left]);
    } finally {
      signal.removeEventListener("abort", leave);
      joined.waiting -= 1;
      if (joined.waiting === 0) {
        joined.giveUp.abort();
        if (current === joined) current = null;
      }
    }
  };

  function begin() {
    const giveUp = new AbortController();
    // One that was given up may need a moment to end.
    const result = last.then(() => {
      giveUp.signal.throwIfAborted();
      return work(giveUp.signal);
    });
    last = result.catch(() => undefined); // whoever waits for it is told
    return { result, waiting: 0, giveUp };
  }
}
