import { afterMs } from "../process/timer.ts";

/** A time limit that can be paused, as while a person is asked. */
export interface StopClock {
  pause(): void;
  goOn(): void;
  /** From the start again. */
  restart(): void;
  stop(): void;
}

export function startStopClock(limitMs: number | null, onOver: () => void, monotonic: () => number): StopClock {
  let left = limitMs ?? Infinity;
  let since = monotonic();
  let cancel: (() => void) | null = null;
  let over = limitMs === null;
  const arm = (): void => {
    if (over || cancel) return;
    since = monotonic();
    cancel = afterMs(Math.max(1, left), () => {
      over = true;
      onOver();
    });
  };
  const pause = (): void => {
    if (!cancel) return;
    cancel();
    cancel = null;
    left -= monotonic() - since;
  };
  arm();
  return {
    pause,
    goOn: arm,
    restart() {
      if (over || !cancel) return;
      pause();
      left = limitMs ?? Infinity;
      arm();
    },
    stop() {
      pause();
      over = true;
    },
  };
}
