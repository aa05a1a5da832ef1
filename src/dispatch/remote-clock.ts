/** Estimates another machine's clock from readings. Each was taken between sending a request and receiving its response. */
export interface RemoteClock {
  /** `at`: the remote time in whole milliseconds. The other times are local: when the request was sent and its response received. */
  addReading(at: number, sentAt: number, receivedAt: number): void;
  /** A lower bound for the current remote time; null before the first reading. */
  earliest(now: number): number | null;
  /** An upper bound for the current remote time; null before the first reading. */
  latest(now: number): number | null;
}

/** Each reading narrows the bounds. A slow response narrows them little, but never widens them. */
export function createRemoteClock(): RemoteClock {
  let offset: { min: number; max: number } | null = null;
  return {
    addReading(at, sentAt, receivedAt) {
      const reading = { min: at - receivedAt, max: at + 1 - sentAt };
      const narrowed = offset && { min: Math.max(offset.min, reading.min), max: Math.min(offset.max, reading.max) };
      // If two readings contradict each other, a clock was set or has drifted, and the newer reading is right.
      offset = narrowed === null || narrowed.min > narrowed.max ? reading : narrowed;
    },
    earliest: (now) => offset && now + offset.min,
    latest: (now) => offset && now + offset.max,
  };
}
