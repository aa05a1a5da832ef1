/** Wakes a single waiter. A notification that arrives while nobody waits ends the next wait at once. */
export interface Wakeup {
  notify(): void;
  /** Drops a notification that is about to be served anyway. */
  reset(): void;
  wait(ms: number, signal: AbortSignal): Promise<void>;
}

export function createWakeup(): Wakeup {
  let notified = false;
  let wake: (() => void) | null = null;
  return {
    notify() {
      notified = true;
      wake?.();
    },
    reset() {
      notified = false;
    },
    async wait(ms, signal) {
      if (!notified && !signal.aborted) {
        await new Promise<void>((resolve) => {
          const finish = (): void => {
            clearTimeout(timer);
            signal.removeEventListener("abort", finish);
            resolve();
          };
          const timer = setTimeout(finish, ms);
          wake = finish;
          signal.addEventListener("abort", finish, { once: true });
        });
        wake = null;
      }
      notified = false;
    },
  };
}
