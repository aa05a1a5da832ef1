/** Resolves once it is the caller's turn: one caller in each round of the event loop, in the order they came. */
export type WaitForTurn = () => Promise<void>;

/** Thousands may have much to catch up with. What each of them does in its turn is short, and others come in between. */
export function createTurnQueue(): WaitForTurn {
  let waiting: (() => void)[] = [];
  let next = 0;
  return () =>
    new Promise((resolve) => {
      waiting.push(resolve);
      if (waiting.length === 1) setImmediate(step);
    });

  function step(): void {
    waiting[next]!();
    next += 1;
    if (next < waiting.length) return void setImmediate(step);
    waiting = [];
    next = 0;
  }
}
