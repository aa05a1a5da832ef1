/** Resolves when it is this piece of work's turn. */
export type HeavyTurn = () => Promise<void>;

/**
 * Work that takes milliseconds is done in pieces, and of all such work one piece in each round of the event loop: pieces of
 * many requests in one round would hold up everybody as long as one large piece.
 */
export function createHeavyTurns(): HeavyTurn {
  const waiting: (() => void)[] = [];
  const round = (): void => {
    waiting.shift()?.();
    if (waiting.length > 0) setImmediate(round);
  };
  return () =>
    new Promise((resolve) => {
      if (waiting.push(resolve) === 1) setImmediate(round);
    });
}
