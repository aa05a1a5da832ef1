/** Resolves when it is this piece of work's turn. */
export type HeavyTurn = () => Promise<void>;

/** Shares the event loop between requests that are quickly answered and work that takes many milliseconds. */
export interface HeavyTurns {
  turn: HeavyTurn;
  /** Counts a request that heavy work lets pass. Call the result once it is answered, or is heavy itself. */
  enterLight(): () => void;
}

/** How long a piece lets light requests pass. One after the other, they could keep it waiting forever. */
const defaultPatienceMs = 8;

/**
 * Heavy work is done in pieces of about a millisecond, and only one piece of all heavy work runs in a round of the event
 * loop. A light request takes several rounds, so a piece also waits while one is under way: its answer would otherwise
 * be late by a piece in each of them.
 */
export function createHeavyTurns(patienceMs = defaultPatienceMs): HeavyTurns {
  const waiting: (() => void)[] = [];
  let light = 0;
  let since = 0;
  const next = (): void => {
    since = performance.now();
    setImmediate(round);
  };
  const round = (): void => {
    if (light > 0 && performance.now() - since < patienceMs) {
      setTimeout(round, 1);
      return;
    }
    waiting.shift()?.();
    if (waiting.length > 0) next();
  };
  return {
    turn: () =>
      new Promise((resolve) => {
        if (waiting.push(resolve) === 1) next();
      }),
    enterLight() {
      let counts = true;
      light += 1;
      return () => {
        if (counts) light -= 1;
        counts = false;
      };
    },
  };
}
