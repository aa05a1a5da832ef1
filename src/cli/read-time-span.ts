import { usageError } from "./options.ts";

const units = { s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** Parses 90s, 15m, 12h, 30d or 4w into milliseconds. Returns null for any other text. */
export function parseTimeSpan(text: string): number | null {
  const [, number, unit] = /^(\d+(?:\.\d+)?)([smhdw])$/.exec(text) ?? [];
  // The pattern matches only the letters of these units.
  return number === undefined ? null : Number(number) * units[unit as keyof typeof units];
}

/** Reads the time span of an option, in milliseconds. */
export function readTimeSpan(text: string, option: string, command: string, max: { text: string; ms: number }): number {
  const ms = parseTimeSpan(text);
  if (ms !== null && ms > 0 && ms <= max.ms) return ms;
  const problem = ms === null ? "is not a time span" : ms > 0 ? `is more than ${max.text}` : "is zero";
  throw usageError(
    `--${option} ${text} ${problem}. Use a time span such as 90s, 15m, 12h, 30d or 4w.`,
    command,
    `--${option}`,
  );
}
