import { setLongTimeout } from "../../process/set-long-timeout.ts";

/** A time limit that can be paused. It continues once every pause() has been followed by a resume(). */
export interface PausableTimer {
  pause(): void;
  resume(): void;
  /** Starts over with the full limit. */
  restart(): void;
  stop(): void;
}

export function startPausableTimer(limitMs: number | null, onOver: () => void, monotonic: () => number): PausableTimer {
  let left = limitMs ?? Infinity;
  let since = monotonic();
  let cancel: (() => void) | null = null;
  let over = limitMs === null;
  let pauses = 0;
  const arm = (): void => {
    if (over || cancel) return;
    since = monotonic();
    cancel = setLongTimeout(Math.max(1, left), () => {
      over = true;
      onOver();
    });
  };
  const halt = (): void => {
    if (!cancel) return;
    cancel();
    cancel = null;
    left -= monotonic() - since;
  };
  arm();
  return {
    pause() {
      pauses++;
      halt();
    },
    resume() {
      pauses = Math.max(0, pauses - 1);
      if (pauses === 0) arm();
    },
    restart() {
      if (over || !cancel) return;
      halt();
      left = limitMs ?? Infinity;
      arm();
    },
    stop() {
      halt();
      over = true;
    },
  };
}
