import { createRequire } from "node:module";
import { join } from "node:path";
import type { Cron } from "croner";
import type { Timing } from "../model/schedule.ts";
import { openZone, type Zone } from "./zone.ts";

/** When a schedule is due, in milliseconds since 1970. */
export interface FireTimes {
  /** The first slot after a moment; null where none comes any more. */
  next(after: number): number | null;
}

export type FireTimesOf = (timing: Timing, anchor: number) => FireTimes;

export const secondsIn: Readonly<Record<string, number>> = { s: 1, m: 60, h: 3600, d: 86_400 };

const nicknames: ReadonlyMap<string, string> = new Map([
  ["@hourly", "0 * * * *"],
  ["@daily", "0 0 * * *"],
  ["@midnight", "0 0 * * *"],
  ["@weekly", "0 0 * * 0"],
  ["@monthly", "0 0 1 * *"],
  ["@yearly", "0 0 1 1 *"],
  ["@annually", "0 0 1 1 *"],
]);

/** Timings must have passed `timingFaults`. Zones are kept: opening one costs more than a hundred slots. */
export function createFireTimes(): FireTimesOf {
  const zones = new Map<string, Zone>();
  return ({ cron, every, timezone }, anchor) => {
    if (cron === undefined) return interval(intervalMs(every ?? "1d"), anchor);
    const zone = zones.get(timezone) ?? openZone(timezone);
    zones.set(timezone, zone);
    return cronTimes(fiveFields(cron), zone);
  };
}

export function intervalMs(every: string): number {
  return Number.parseInt(every, 10) * (secondsIn[every.slice(-1)] ?? 1) * 1000;
}

/** The expression with a nickname written out and single spaces. */
export function fiveFields(cron: string): string {
  const text = cron.trim().replaceAll(/\s+/g, " ");
  return nicknames.get(text.toLowerCase()) ?? text;
}

export function openPattern(fields: string): Cron {
  // Local times are passed as if they were UTC: where they lie in time is for the zone to say.
  return new (loadCron())(fields, { utcOffset: 0 });
}

let loaded: typeof Cron | null = null;

/** Loaded with the first expression: most commands meet none, and all of them would pay for it. */
function loadCron(): typeof Cron {
  // A CommonJS bundle has __dirname and no import.meta.dirname; the source tree has it the other way round.
  const here = typeof __dirname === "string" ? __dirname : import.meta.dirname;
  // as its own types say
  loaded ??= (createRequire(join(here, "fire-times.js"))("croner") as { Cron: typeof Cron }).Cron;
  return loaded;
}

function interval(ms: number, anchor: number): FireTimes {
  return { next: (after) => anchor + Math.max(1, Math.floor((after - anchor) / ms) + 1) * ms };
}

function cronTimes(fields: string, zone: Zone): FireTimes {
  const pattern = openPattern(fields);
  const nextLocal = (local: number): number | null => pattern.nextRun(new Date(local))?.getTime() ?? null;
  const [minute = "", hour = ""] = fields.split(" ");
  return `${minute}${hour}`.includes("*") ? byTheWallClock(nextLocal, zone) : onceForEachTime(nextLocal, zone);
}

type NextLocal = (local: number) => number | null;

/** A local time that is skipped counts as the end of the gap; of one that comes twice, the first counts. */
function onceForEachTime(nextLocal: NextLocal, zone: Zone): FireTimes {
  return {
    next(after) {
      for (let local = nextLocal(zone.toLocal(after)); local !== null; local = nextLocal(local)) {
        const slot = zone.moments(local)[0] ?? zone.afterGap(local);
        if (slot > after) return slot;
      }
      return null;
    },
  };
}

/** Longer than any clock is set back. */
const mostSetBack = 3 * 3_600_000;

/** Whenever a clock on the wall shows such a time: never in a gap, twice in an overlap. */
function byTheWallClock(nextLocal: NextLocal, zone: Zone): FireTimes {
  return {
    next(after) {
      const here = zone.toLocal(after);
      const straight = firstAfter(here, null);
      // Times that were shown already are shown again.
      const isSetBack = zone.toLocal(after + mostSetBack) - here < mostSetBack;
      const again = isSetBack ? firstAfter(here - mostSetBack, here) : null;
      return again === null || (straight !== null && straight < again) ? straight : again;

      function firstAfter(from: number, until: number | null): number | null {
        for (let local = nextLocal(from); local !== null; local = nextLocal(local)) {
          if (until !== null && local > until) return null;
          const slot = zone.moments(local).find((moment) => moment > after);
          if (slot !== undefined) return slot;
        }
        return null;
      }
    },
  };
}
