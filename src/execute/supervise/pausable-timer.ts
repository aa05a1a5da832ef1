import { setLongTimeout } from "../../process/set-long-timeout.ts";

/** A time limit that can be paused. It continues once every pause() has been followed by a resume(). */
export interface PausableTimer {
  pause(): void;
  resume(): void;
  /** Starts over with the full limit. */
  restart(): void;
  stop(): void;
}

export function startPausableTimer(
  limitMs: number | null,
  onExpired: () => void,
  monotonic: () => number,
): PausableTimer {
  let remainingMs = limitMs ?? Infinity;
  let armedAt = monotonic();
  let cancel: (() => void) | null = null;
  let hasFired = limitMs === null;
  let pauses = 0;
  const arm = (): void => {
    if (hasFired || cancel) return;
    armedAt = monotonic();
    cancel = setLongTimeout(Math.max(1, remainingMs), () => {
      hasFired = true;
      onExpired();
    });
  };
  const disarm = (): void => {
    if (!cancel) return;
    cancel();
    cancel = null;
    remainingMs -= monotonic() - armedAt;
  };
  arm();
  return {
    pause() {
      pauses++;
      disarm();
    },
    resume() {
      pauses = Math.max(0, pauses - 1);
      if (pauses === 0) arm();
    },
    restart() {
      if (hasFired || !cancel) return;
      disarm();
      remainingMs = limitMs ?? Infinity;
      arm();
    },
    stop() {
      disarm();
      hasFired = true;
    },
  };
}
