/** Resolves when it is the caller's turn. One caller per event loop iteration gets a turn, in order of arrival. */
export type WaitForTurn = () => Promise<void>;

/** Keeps the process responsive while thousands of followers catch up: each does a short piece of work per turn. */
export function createTurnQueue(): WaitForTurn {
  let waiting: (() => void)[] = [];
  let next = 0;
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 1) setImmediate(resolveNext);
    });

  function resolveNext(): void {
    waiting[next]!();
    next += 1;
    if (next < waiting.length) return void setImmediate(resolveNext);
    waiting = [];
    next = 0;
  }
}
