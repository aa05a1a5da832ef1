export interface Ticking {
  /** Resolves when a turn that is under way has ended. */
  stop(): Promise<void>;
}

/** One turn after the other, with a pause of `ms` between them; a failed turn is told, and the next one still comes. */
export function every(ms: number, turn: () => Promise<unknown>, onFault: (fault: unknown) => void): Ticking {
  let stopped = false;
  let timer: NodeJS.Timeout | null = null;
  let underWay: Promise<void> = Promise.resolve();
  plan();
  return {
    async stop() {
      stopped = true;
      if (timer !== null) clearTimeout(timer);
      await underWay;
    },
  };

  function plan(): void {
    if (stopped) return;
    timer = setTimeout(() => {
      underWay = turn().then(undefined, onFault).then(plan);
    }, ms);
    timer.unref();
  }
}
