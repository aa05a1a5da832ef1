/** A client that says nothing for so long is past the moment that matters, or will never say anything. */
const longestMs = 5000;

const last = new Map<string, Promise<void>>();

/**
 * For clients that get into each other's way while they start: resolves when all who came before for this folder have
 * begun, and gives what to call when this one has.
 */
export async function startInTurn(folder: string, waitMs = longestMs): Promise<() => void> {
  const before = last.get(folder) ?? Promise.resolve();
  const { promise: mine, resolve } = withResolvers();
  const all = before.then(() => mine);
  last.set(folder, all);
  void all.then(() => last.get(folder) === all && last.delete(folder));
  await before;
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
