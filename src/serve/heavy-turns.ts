/** Resolves when the next piece of heavy work may run. */
export type HeavyTurn = () => Promise<void>;

/** Shares the event loop between light requests and work that takes many milliseconds. */
export interface HeavyTurns {
  waitForTurn: HeavyTurn;
  /**
   * Counts a light request, which heavy work yields to. Call the returned function when the request is done or turns
   * out to be heavy.
   */
  startLightRequest(): () => void;
}

/** The longest time that heavy work yields. A steady flow of light requests could otherwise starve it. */
const defaultMaxYieldMs = 8;

/**
 * Heavy work is done in pieces of about a millisecond, and only one piece of all heavy work runs in a round of the event
 * loop. A light request takes several rounds, so heavy work waits while one is in progress: otherwise it would delay
 * that request by one piece per round.
 */
export function createHeavyTurns(maxYieldMs = defaultMaxYieldMs): HeavyTurns {
  const waiting: (() => void)[] = [];
  let lightRequests = 0;
  let scheduledAt = 0;
  const scheduleRound = (): void => {
    scheduledAt = performance.now();
    setImmediate(round);
  };
  const round = (): void => {
    if (lightRequests > 0 && performance.now() - scheduledAt < maxYieldMs) {
      setTimeout(round, 1);
      return;
    }
    waiting.shift()?.();
    if (waiting.length > 0) scheduleRound();
  };
  return {
    waitForTurn: () =>
      new Promise((resolve) => {
        if (waiting.push(resolve) === 1) scheduleRound();
      }),
    startLightRequest() {
      let isCounted = true;
      lightRequests += 1;
      return () => {
        if (isCounted) lightRequests -= 1;
        isCounted = false;
      };
    },
  };
}
