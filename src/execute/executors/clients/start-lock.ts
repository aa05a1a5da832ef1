/** If a client prints nothing for this long, it has started or hangs, and the next client may start. */
const maxStartupMs = 5000;

const lastStarts = new Map<string, Promise<void>>();

/**
 * Serializes the starts of clients that interfere with each other. Waits until the earlier clients in this directory
 * have started, and returns a function to call once this one has.
 */
export async function acquireStartLock(directory: string, waitMs = maxStartupMs): Promise<() => void> {
  const earlierStarts = lastStarts.get(directory) ?? Promise.resolve();
  const { promise: ownStart, resolve } = withResolvers();
  const allStarts = earlierStarts.then(() => ownStart);
  lastStarts.set(directory, allStarts);
  void allStarts.then(() => lastStarts.get(directory) === allStarts && lastStarts.delete(directory));
  await earlierStarts;
  const timer = setTimeout(resolve, waitMs);
  return () => {
    clearTimeout(timer);
    resolve();
  };
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve!: () => void;
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}
