import { type ParsedOptions, readText, usageError } from "./options.ts";
import { parseTimeSpan } from "./read-time-span.ts";

/** Explains the values of --since and --until in help texts. */
export const timeForms =
  "a time span before now such as 1h or 7d, or a date or time such as 2026-01-31 or 2026-01-31T12:00:00Z";

/**
 * Reads the point in time of an option, such as --since, as an ISO time. A time span counts back from now. A date means
 * its first moment in UTC.
 */
export function readTime(options: ParsedOptions, name: "since" | "until", command: string): string | undefined {
  const value = readText(options, name);
  if (value === undefined) return undefined;
  const span = parseTimeSpan(value);
  // Without a year, Date.parse would guess one.
  const ms = span === null ? Date.parse(/\d{4}/.test(value) ? value : "") : Date.now() - span;
  const time = new Date(ms);
  if (Number.isNaN(time.getTime()) || time.getUTCFullYear() < 0 || time.getUTCFullYear() > 9999)
    throw usageError(
      `--${name} ${value} is not a time. Use a time span such as 1h or 7d, or a date or time such as 2026-01-31 or 2026-01-31T12:00:00Z.`,
      command,
      `--${name}`,
    );
  return time.toISOString();
}
