/** A timezone. Local times are represented as the milliseconds they would be in UTC. */
export interface Zone {
  toLocal(instant: number): number;
  /** The instants at which a clock there shows this time, earliest first: none in a DST gap, two in an overlap. */
  findInstants(local: number): number[];
  /** For a local time in a gap, the instant the clock is set forward. */
  findGapEnd(local: number): number;
}

const dayMs = 86_400_000;

/** Throws a RangeError for an unknown timezone. */
export function openZone(timezone: string): Zone {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone: timezone,
    hourCycle: "h23",
    year: "numeric",
    month: "numeric",
    day: "numeric",
    hour: "numeric",
    minute: "numeric",
    second: "numeric",
  });
  return { toLocal, findInstants, findGapEnd };

  function toLocal(instant: number): number {
    const part: Record<string, number> = {};
    for (const { type, value } of format.formatToParts(instant)) part[type] = Number(value);
    const { year = 0, month = 1, day: date = 1, hour = 0, minute = 0, second = 0 } = part;
    return Date.UTC(year, month - 1, date, hour, minute, second) + (instant - Math.floor(instant / 1000) * 1000);
  }

  function getOffset(instant: number): number {
    return toLocal(instant) - instant;
  }

  function findInstants(local: number): number[] {
    const candidates = new Set([local - getOffset(local - dayMs), local - getOffset(local + dayMs)]);
    return [...candidates].filter((instant) => toLocal(instant) === local).sort((a, b) => a - b);
  }

  function findGapEnd(local: number): number {
    let [before, after] = [local - dayMs, local + dayMs];
    while (after - before > 1) {
      const middle = Math.floor((before + after) / 2);
      if (toLocal(middle) < local) before = middle;
      else after = middle;
    }
    return after;
  }
}
