/** What one event may hold: a log is read by people, and has to travel in reports. */
const maxCharacters = 256 * 1024;
const maxString = 32 * 1024;

/** The same value, or one whose long strings are cut, or else its beginning as text. */
export function bounded<T extends object>(event: T): T {
  if (sizeOf(event) <= maxCharacters) return event;
  const shorter = shorten(event) as T; // only strings inside it became shorter
  if (sizeOf(shorter) <= maxCharacters) return shorter;
  const entries = Object.entries(shorter).map(([key, value]): [string, unknown] =>
    sizeOf(value) <= maxString ? [key, value] : [key, cut(JSON.stringify(value))],
  );
  // only `input`, `output` and `data`, which may be anything, grow without long strings
  return Object.fromEntries(entries) as T;
}

function sizeOf(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0;
}

function shorten(value: unknown): unknown {
  if (typeof value === "string") return cut(value);
  if (Array.isArray(value)) return value.map(shorten);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, shorten(inner)]));
}

function cut(text: string): string {
  if (text.length <= maxString) return text;
  return `${text.slice(0, maxString).toWellFormed()}… (${text.length - maxString} more characters)`;
}
