/** Estimates another machine's clock from its answers: each was read between sending the request and receiving it. */
export interface RemoteClock {
  /** `at`: the remote time in whole milliseconds. The other times are local: when the request was sent and answered. */
  hear(at: number, asked: number, answered: number): void;
  /** A lower bound for its current time. null before the first answer. */
  earliest(now: number): number | null;
  /** An upper bound for its current time. null before the first answer. */
  latest(now: number): number | null;
}

/** Each answer narrows the bounds. A slow answer narrows them little, but never widens them. */
export function createRemoteClock(): RemoteClock {
  let ahead: { least: number; most: number } | null = null;
  return {
    hear(at, asked, answered) {
      const heard = { least: at - answered, most: at + 1 - asked };
      const both = ahead && { least: Math.max(ahead.least, heard.least), most: Math.min(ahead.most, heard.most) };
      // If answers contradict each other, a clock was set or has drifted, and the newer answer is right.
      ahead = both === null || both.least > both.most ? heard : both;
    },
    earliest: (now) => ahead && now + ahead.least,
    latest: (now) => ahead && now + ahead.most,
  };
}
