import { formatColumns } from "./help.ts";

/** Returns the timezone of this machine. */
export function getLocalTimezone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}

/** Formats a time like "Mon 2026-03-09 03:00 GMT+1", with seconds only if they are not zero. */
export function formatTime(time: string, timeZone: string): string {
  const format = new Intl.DateTimeFormat("en-US", {
    timeZone,
    hourCycle: "h23",
    weekday: "short",
    year: "numeric",
    month: "2-digit",
    day: "2-digit",
    hour: "2-digit",
    minute: "2-digit",
    second: "2-digit",
    timeZoneName: "short",
  });
  const parts = Object.fromEntries(format.formatToParts(new Date(time)).map(({ type, value }) => [type, value]));
  const { weekday, year, month, day, hour, minute, second, timeZoneName } = parts;
  const seconds = second === "00" ? "" : `:${second}`;
  return `${weekday} ${year}-${month}-${day} ${hour}:${minute}${seconds} ${timeZoneName}`;
}

/** Formats each slot in the schedule's timezone, and also in the local one if it differs. */
export function formatSlots(slots: readonly string[], timezone: string): string[] {
  const localZone = getLocalTimezone();
  if (localZone === timezone) return slots.map((time) => `  ${formatTime(time, timezone)}`);
  const rows = slots.map((time): [string, string] => [formatTime(time, timezone), formatTime(time, localZone)]);
  return formatColumns([[timezone, `${localZone} (local)`], ...rows]);
}
