import { createRequire } from "node:module";
import { join } from "node:path";
import type { Cron } from "croner";
import type { Timing } from "../model/schedule.ts";
import { openZone, type Zone } from "./zone.ts";

/** The times a schedule is due, in milliseconds since 1970. */
export interface SlotTimes {
  /** The first slot after this time, or null if there are no more slots. */
  next(after: number): number | null;
}

export type GetSlotTimes = (timing: Timing, anchor: number) => SlotTimes;

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

/** Timings must have passed `checkTiming`. Caches zones, because opening one costs more than computing a hundred slots. */
export function createSlotTimesFactory(): GetSlotTimes {
  const zones = new Map<string, Zone>();
  return ({ cron, every, timezone }, anchor) => {
    if (cron === undefined) return createIntervalTimes(toIntervalMs(every ?? "1d"), anchor);
    const zone = zones.get(timezone) ?? openZone(timezone);
    zones.set(timezone, zone);
    return createCronTimes(expandCron(cron), zone);
  };
}

export function toIntervalMs(every: string): number {
  return Number.parseInt(every, 10) * (secondsIn[every.slice(-1)] ?? 1) * 1000;
}

/** The expression with nicknames expanded and single spaces. */
export function expandCron(cron: string): string {
  const text = cron.trim().replaceAll(/\s+/g, " ");
  return nicknames.get(text.toLowerCase()) ?? text;
}

export function createCron(fields: string): Cron {
  // Local times are passed to croner as if they were UTC; the zone converts them to instants.
  return new (loadCron())(fields, { utcOffset: 0 });
}

let cronClass: typeof Cron | null = null;

/** Loads croner lazily: most commands never see a cron expression and should not pay for it. */
function loadCron(): typeof Cron {
  // A CommonJS bundle has only __dirname; the source tree has only import.meta.dirname.
  const directory = typeof __dirname === "string" ? __dirname : import.meta.dirname;
  // The type of croner's CommonJS export.
  cronClass ??= (createRequire(join(directory, "slot-times.js"))("croner") as { Cron: typeof Cron }).Cron;
  return cronClass;
}

function createIntervalTimes(ms: number, anchor: number): SlotTimes {
  return { next: (after) => anchor + Math.max(1, Math.floor((after - anchor) / ms) + 1) * ms };
}

function createCronTimes(fields: string, zone: Zone): SlotTimes {
  const cron = createCron(fields);
  const findNextLocal = (local: number): number | null => cron.nextRun(new Date(local))?.getTime() ?? null;
  const [minute = "", hour = ""] = fields.split(" ");
  return `${minute}${hour}`.includes("*")
    ? createRepeatingLocalTimes(findNextLocal, zone)
    : createUniqueLocalTimes(findNextLocal, zone);
}

type NextLocal = (local: number) => number | null;

/**
 * Has one slot per local time. A time in a DST gap is due at the end of the gap; a time that occurs twice is due the first
 * time.
 */
function createUniqueLocalTimes(findNextLocal: NextLocal, zone: Zone): SlotTimes {
  return {
    next(after) {
      for (let local = findNextLocal(zone.toLocal(after)); local !== null; local = findNextLocal(local)) {
        const slot = zone.findInstants(local)[0] ?? zone.findGapEnd(local);
        if (slot > after) return slot;
      }
      return null;
    },
  };
}

/** More than any timezone sets its clock back. */
const maxSetBackMs = 3 * 3_600_000;

/** Has a slot whenever the local time matches: none in a DST gap, two in an overlap. */
function createRepeatingLocalTimes(findNextLocal: NextLocal, zone: Zone): SlotTimes {
  return {
    next(after) {
      const localNow = zone.toLocal(after);
      const ahead = findFirstAfter(localNow, null);
      // In an overlap, local times that have already passed occur a second time.
      const isSetBack = zone.toLocal(after + maxSetBackMs) - localNow < maxSetBackMs;
      const repeated = isSetBack ? findFirstAfter(localNow - maxSetBackMs, localNow) : null;
      return repeated === null || (ahead !== null && ahead < repeated) ? ahead : repeated;

      function findFirstAfter(from: number, until: number | null): number | null {
        for (let local = findNextLocal(from); local !== null; local = findNextLocal(local)) {
          if (until !== null && local > until) return null;
          const slot = zone.findInstants(local).find((instant) => instant > after);
          if (slot !== undefined) return slot;
        }
        return null;
      }
    },
  };
}
