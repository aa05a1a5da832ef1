/** Resolves when it is the caller's turn. One caller per event loop iteration gets a turn, in order of arrival. */
export type WaitForTurn = () => Promise<void>;

/** Keeps the process responsive while thousands of followers catch up: each does a short piece of work per turn. */
export function createTurnQueue(): WaitForTurn {
  let waiters: (() => void)[] = [];
  let nextIndex = 0;
  return () =>
    new Promise((resolve) => {
      waiters.push(resolve);
      if (waiters.length === 1) setImmediate(resolveNext);
    });

  function resolveNext(): void {
    waiters[nextIndex]!();
    nextIndex += 1;
    if (nextIndex < waiters.length) return void setImmediate(resolveNext);
    waiters = [];
    nextIndex = 0;
  }
}
