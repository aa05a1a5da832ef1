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
    const list = waiting.get(caller);
    const used = (started.get(caller) ?? 0) + weight;
    if (list === undefined && used <= max) {
      started.set(caller, used);
      return undefined;
    }
    return new Promise((start) => {
      if (list) list.push({ weight, start });
      else waiting.set(caller, [{ weight, start }]);
    });
  };

  function nextRound(): void {
    started.clear();
    for (const [caller, list] of waiting) {
      let used = 0;
      let count = 0;
      for (const { weight } of list) {
        if (count > 0 && used + weight > max) break;
        used += weight;
        count += 1;
      }
      started.set(caller, used);
      for (const { start } of list.splice(0, count)) start();
      if (list.length === 0) waiting.delete(caller);
    }
    isScheduled = started.size > 0;
    if (isScheduled) setImmediate(nextRound);
  }
}
