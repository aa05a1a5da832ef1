/** Resolves when this caller may start another request. Returns undefined if it may start at once. */
export type Pace = (caller: string, weight: number) => Promise<void> | undefined;

/** Total weight that one caller may start per round of the event loop: a few milliseconds of work. */
const maxPerRound = 16;

interface WaitingRequest {
  weight: number;
  start(): void;
}

/** Spreads a burst of requests over many rounds of the event loop, so it does not delay other callers. */
export function createPacing(max = maxPerRound): Pace {
  const started = new Map<string, number>();
  const waiting = new Map<string, WaitingRequest[]>();
  let isScheduled = false;
  return (caller, weight) => {
    if (!isScheduled) setImmediate(nextRound);
    isScheduled = true;
    const queue = waiting.get(caller);
    const usedWeight = (started.get(caller) ?? 0) + weight;
    if (queue === undefined && usedWeight <= max) {
      started.set(caller, usedWeight);
      return undefined;
    }
    return new Promise((start) => {
      if (queue) queue.push({ weight, start });
      else waiting.set(caller, [{ weight, start }]);
    });
  };

  function nextRound(): void {
    started.clear();
    for (const [caller, queue] of waiting) {
      let usedWeight = 0;
      let count = 0;
      for (const { weight } of queue) {
        if (count > 0 && usedWeight + weight > max) break;
        usedWeight += weight;
        count += 1;
      }
      started.set(caller, usedWeight);
      for (const { start } of queue.splice(0, count)) start();
      if (queue.length === 0) waiting.delete(caller);
    }
    isScheduled = started.size > 0;
    if (isScheduled) setImmediate(nextRound);
  }
}
