/** Another's clock, as far as its answers tell: what it showed lies between asking and hearing. */
export interface RemoteClock {
  /** `at`: whole milliseconds that it showed, asked for and heard at these times by the clock here. */
  hear(at: number, asked: number, answered: number): void;
  /** No later than it shows now; null: it was never heard. */
  earliest(now: number): number | null;
  /** No earlier than it shows now; null: it was never heard. */
  latest(now: number): number | null;
}

/** Each answer narrows it down: a slow one says little, and takes nothing from what a quick one told. */
export function createRemoteClock(): RemoteClock {
  let ahead: { least: number; most: number } | null = null;
  return {
    hear(at, asked, answered) {
      const heard = { least: at - answered, most: at + 1 - asked };
      const both = ahead && { least: Math.max(ahead.least, heard.least), most: Math.min(ahead.most, heard.most) };
      // Where they contradict each other, one of the clocks was set, or they have drifted apart: the newer one is right.
      ahead = both === null || both.least > both.most ? heard : both;
    },
    earliest: (now) => ahead && now + ahead.least,
    latest: (now) => ahead && now + ahead.most,
  };
}
