import type { Timing } from "../model/schedule.ts";
import { suggest } from "../model/suggest.ts";
import { createSlotTimesFactory, expandCron, toIntervalMs, createCron } from "./slot-times.ts";
import { openZone } from "./zone.ts";

export interface TimingFault {
  path: "cron" | "every" | "timezone";
  message: string;
  next: string;
}

/** A shorter interval calls for a long-running process, not for a schedule. */
export const minEverySeconds = 10;

/** All faults of a timing that already has the right shape. */
export function checkTiming(timing: Timing, now: number): TimingFault[] {
  const faults = [checkZone(timing.timezone), ...(timing.every ? [checkInterval(timing.every)] : [])];
  const cron = timing.cron === undefined ? null : checkCron(timing.cron);
  const valueFaults = [cron, ...faults].filter((fault) => fault !== null);
  if (valueFaults.length > 0) return valueFaults;
  const first = createSlotTimesFactory()(timing, now).next(now);
  if (first !== null && Number.isFinite(first) && first < maxTime) return [];
  const [path, value] =
    timing.cron === undefined ? (["every", timing.every] as const) : (["cron", timing.cron] as const);
  const message = `${path} ${value} never occurs: there is no such day`;
  return [
    { path, message, next: "Choose a day that exists: the fields are minute, hour, day of month, month, weekday." },
  ];
}

/** ISO timestamps of later instants have more than four digits in their year. */
const maxTime = Date.UTC(9999, 0, 1);

function checkCron(cron: string): TimingFault | null {
  const createCronFault = (message: string, next: string): TimingFault => ({ path: "cron", message, next });
  const text = expandCron(cron);
  if (text.startsWith("@"))
    return createCronFault(
      `unknown cron expression: ${cron}`,
      "Use @hourly, @daily, @weekly, @monthly or @yearly, or five fields.",
    );
  const count = text === "" ? 0 : text.split(" ").length;
  if (count !== 5) {
    const fields = "minute, hour, day of month, month, weekday";
    const seconds = count === 6 ? " Seconds and years are not supported." : "";
    return createCronFault(`cron ${cron} has ${count} fields, not five`, `Write five fields: ${fields}.${seconds}`);
  }
  try {
    createCron(text);
    return null;
  } catch (error) {
    // Use croner's message without its class name.
    const problem = error instanceof Error ? error.message.replace(/^CronPattern:\s*/, "") : String(error);
    return createCronFault(
      `cron ${cron} cannot be read: ${problem}`,
      "Correct that field, e.g. 0 3 * * * for every night at 3:00.",
    );
  }
}

function checkInterval(every: string): TimingFault | null {
  const ms = toIntervalMs(every);
  if (ms >= minEverySeconds * 1000 && ms <= maxEveryMs) return null;
  return ms > maxEveryMs
    ? { path: "every", message: `every ${every} is longer than ten years`, next: "Use a shorter interval." }
    : {
        path: "every",
        message: `every ${every} is less than ${minEverySeconds}s`,
        next: `Use ${minEverySeconds}s or more.`,
      };
}

const maxEveryMs = 3650 * 86_400_000;

function checkZone(timezone: string): TimingFault | null {
  try {
    openZone(timezone);
    return null;
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    const names = Intl.supportedValuesOf("timeZone");
    // "Berlin" is too different from "Europe/Berlin" for suggest(), which looks for typos.
    const ending = names.find((name) => name.toLowerCase().endsWith(`/${timezone.toLowerCase().replaceAll(" ", "_")}`));
    const suggestion = ending ?? suggest(timezone, names);
    return {
      path: "timezone",
      message: `unknown timezone: ${timezone}.${suggestion ? ` Did you mean ${suggestion}?` : ""}`,
      next: suggestion ? `Write ${suggestion}.` : "Use a name such as Europe/Berlin, America/New_York or UTC.",
    };
  }
}
