import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createSlotTimesFactory } from "./slot-times.ts";
import { checkTiming } from "./check-timing.ts";

const getSlotTimes = createSlotTimesFactory();
const parseUtc = (text: string): number => Date.parse(`${text.replace(" ", "T")}Z`);

/** Returns the next slots after a point in time, as "MM-DD HH:MM" in UTC. */
function listSlots(cron: string, timezone: string, from: string, count: number): string[] {
  const times = getSlotTimes({ cron, timezone }, 0);
  const found: string[] = [];
  for (let at = times.next(parseUtc(from)); at !== null && found.length < count; at = times.next(at))
    found.push(new Date(at).toISOString().slice(5, 16).replace("T", " "));
  return found;
}

interface Row {
  timezone: string;
  day: string;
  cron: string;
  expected: string[];
}

/** Reads the table of docs/schedules.md: | timezone | local day | cron | slots in UTC | why |. */
function readDocumentedSlots(): Row[] {
  const text = readFileSync(join(import.meta.dirname, "..", "..", "docs", "schedules.md"), "utf8");
  return [...text.matchAll(/^\| `(\w+\/\w+)` \| (\d{4}-\d\d-\d\d)[^|]*\| `([^`]+)` \| ([^|]+) \|/gm)].map(
    ([, timezone = "", day = "", cron = "", instants = ""]) => ({
      timezone,
      day,
      cron,
      expected: instants.trim() === "none" ? [] : instants.split(",").map((item) => item.trim()),
    }),
  );
}

test("documents both clock changes in at least five timezones", () => {
  const rows = readDocumentedSlots();
  expect(new Set(rows.map(({ timezone }) => timezone)).size).toBeGreaterThanOrEqual(5);
  for (const timezone of new Set(rows.map((row) => row.timezone)))
    expect(new Set(rows.filter((row) => row.timezone === timezone).map(({ day }) => day)).size).toBe(2);
});

test.each(readDocumentedSlots())(
  "finds the documented slots of $cron in $timezone on $day",
  ({ timezone, day, cron, expected }) => {
    const dayFormat = new Intl.DateTimeFormat("en-CA", { timeZone: timezone, dateStyle: "short" });
    const times = getSlotTimes({ cron, timezone }, 0);
    const found: string[] = [];
    // Start at an instant that is before that day in every timezone.
    for (let at = times.next(parseUtc(`${day} 00:00`) - 86_400_000); at !== null; at = times.next(at)) {
      const local = dayFormat.format(at);
      if (local > day) break;
      if (local === day) found.push(new Date(at).toISOString().slice(5, 16).replace("T", " "));
    }
    expect(found).toEqual(expected);
  },
);

test("returns the same slots from any start time", () => {
  const changes = ["2026-03-08 05:00", "2026-11-01 04:00"];
  for (const cron of ["30 1 * * *", "0,30 1,2 * * *", "*/30 * * * *", "*/20 1,2 * * *", "15 * * * *"])
    for (const from of changes) {
      const times = getSlotTimes({ cron, timezone: "America/New_York" }, 0);
      const all: number[] = [];
      const end = parseUtc(from) + 30 * 3_600_000;
      for (let at = times.next(parseUtc(from)); at !== null && at <= end; at = times.next(at)) all.push(at);
      for (let instant = parseUtc(from); instant < end; instant += 7 * 60_000)
        expect(times.next(instant)).toBe(all.find((at) => at > instant) ?? times.next(end));
    }
});

test("finds slots on leap days, also across a century year without a leap day", () => {
  expect(listSlots("0 12 29 2 *", "Europe/Berlin", "2026-01-01 00:00", 2)).toEqual(["02-29 11:00", "02-29 11:00"]);
  const times = getSlotTimes({ cron: "0 12 29 2 *", timezone: "UTC" }, 0);
  expect(new Date(times.next(parseUtc("2096-03-01 00:00"))!).toISOString()).toBe("2104-02-29T12:00:00.000Z");
});

test("accepts names, ranges, steps, lists and nicknames; matches day of month or weekday", () => {
  expect(listSlots("0 9 * * MON-FRI", "UTC", "2026-01-02 10:00", 2)).toEqual(["01-05 09:00", "01-06 09:00"]);
  expect(listSlots("@daily", "Asia/Kathmandu", "2026-01-01 00:00", 1)).toEqual(["01-01 18:15"]);
  expect(listSlots("0 0 13 * 5", "UTC", "2026-02-01 00:00", 3)).toEqual(["02-06 00:00", "02-13 00:00", "02-20 00:00"]);
});

test.each(["__proto__", "constructor", "toString"])(
  "refuses the inherited property %s as a cron expression",
  (cron) => {
    expect(checkTiming({ cron, timezone: "UTC" }, Date.now())).toMatchObject([{ path: "cron" }]);
  },
);

test("counts an interval from its anchor, regardless of daylight saving", () => {
  const anchor = parseUtc("2026-03-29 00:10");
  const times = getSlotTimes({ every: "90m", timezone: "Europe/Berlin" }, anchor);
  expect(times.next(anchor)).toBe(anchor + 5_400_000);
  expect(times.next(anchor + 5_400_000)).toBe(anchor + 2 * 5_400_000);
  expect(times.next(anchor + 100 * 5_400_000 - 1)).toBe(anchor + 100 * 5_400_000);
  // The clock went back after the anchor.
  expect(times.next(anchor - 3_600_000)).toBe(anchor + 5_400_000);
});

test.each([
  [{ cron: "* * * * * *" }, "cron", "has 6 fields, not five"],
  [{ cron: "0 0 * *" }, "cron", "has 4 fields, not five"],
  [{ cron: "@reboot" }, "cron", "unknown cron expression: @reboot"],
  [{ cron: "61 * * * *" }, "cron", "minute: 61"],
  [{ cron: "0 24 * * *" }, "cron", "hour: 24"],
  [{ cron: "5-1 * * * *" }, "cron", "5-1"],
  [{ cron: "0 0 30 2 *" }, "cron", "never occurs"],
  [{ cron: "0 0 31 4,6,9,11 *" }, "cron", "never occurs"],
  [{ every: "5s" }, "every", "less than 10s"],
  [{ every: "99999d" }, "every", "longer than ten years"],
  [{ cron: "0 9 * * *", timezone: "Europe/Berln" }, "timezone", "Did you mean Europe/Berlin?"],
  [{ cron: "0 9 * * *", timezone: "new york" }, "timezone", "Did you mean America/New_York?"],
  [{ cron: "0 9 * * *", timezone: "Mars/Base" }, "timezone", "unknown timezone: Mars/Base."],
])("refuses %j", (timing, path, message) => {
  const [fault, ...more] = checkTiming({ timezone: "UTC", ...timing }, Date.now());
  expect(fault).toMatchObject({ path, message: expect.stringContaining(message), next: expect.any(String) });
  expect(more).toEqual([]);
});
