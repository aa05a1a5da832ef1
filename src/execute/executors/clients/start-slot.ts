/** After this much silence, the client is past its startup or hangs. */
const maxStartupMs = 5000;

const last = new Map<string, Promise<void>>();

/**
 * Serializes the starts of clients that interfere with each other. Waits until the earlier clients in this directory
 * have started, and returns a function to call once this one has.
 */
export async function acquireStartSlot(directory: string, waitMs = maxStartupMs): Promise<() => void> {
  const earlier = last.get(directory) ?? Promise.resolve();
  const { promise: mine, resolve } = withResolvers();
  const all = earlier.then(() => mine);
  last.set(directory, all);
  void all.then(() => last.get(directory) === all && last.delete(directory));
  await earlier;
  const late = setTimeout(resolve, waitMs);
  return () => {
    clearTimeout(late);
    resolve();
  };
}

function withResolvers(): { promise: Promise<void>; resolve: () => void } {
  let resolve!: () => void;
  const promise = new Promise<void>((settle) => (resolve = settle));
  return { promise, resolve };
}
