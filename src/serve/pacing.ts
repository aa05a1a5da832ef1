/** Resolves when this caller may begin another request; undefined: at once. */
export type Pace = (caller: string, weight: number) => Promise<void> | undefined;

/** What one caller may begin in one round of the event loop. Some milliseconds, then others have their turn. */
const maxPerRound = 16;

interface Waiting {
  weight: number;
  begin(): void;
}

/** A flood of requests that arrive together is begun in many rounds; who sends one now and then is not behind it. */
export function createPacing(most = maxPerRound): Pace {
  const begun = new Map<string, number>();
  const waiting = new Map<string, Waiting[]>();
  let isScheduled = false;
  return (caller, weight) => {
    if (!isScheduled) setImmediate(nextRound);
    isScheduled = true;
    const list = waiting.get(caller);
    const used = (begun.get(caller) ?? 0) + weight;
    if (list === undefined && used <= most) {
      begun.set(caller, used);
      return undefined;
    }
    return new Promise((begin) => {
      if (list) list.push({ weight, begin });
      else waiting.set(caller, [{ weight, begin }]);
    });
  };

  function nextRound(): void {
    begun.clear();
    for (const [caller, list] of waiting) {
      let used = 0;
      let count = 0;
      for (const { weight } of list) {
        if (count > 0 && used + weight > most) break;
        used += weight;
        count += 1;
      }
      begun.set(caller, used);
      for (const { begin } of list.splice(0, count)) begin();
      if (list.length === 0) waiting.delete(caller);
    }
    isScheduled = begun.size > 0;
    if (isScheduled) setImmediate(nextRound);
  }
}
