/** The most characters in one event. People read the log, and events travel in reports. */
const maxCharacters = 256 * 1024;
const maxString = 32 * 1024;

/** Returns the event unchanged if it is small enough. Otherwise cuts its long strings, then whole fields. */
export function limitEventSize<T extends object>(event: T): T {
  if (sizeOf(event) <= maxCharacters) return event;
  const shorter = shorten(event) as T; // the shape is unchanged, only strings are shorter
  if (sizeOf(shorter) <= maxCharacters) return shorter;
  const entries = Object.entries(shorter).map(([key, value]): [string, unknown] =>
    sizeOf(value) <= maxString ? [key, value] : [key, cut(JSON.stringify(value))],
  );
  // only `input`, `output` and `data` can be this large, and they accept any value
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
