/** The most characters in one event, which people read in the log and runners send in reports. */
const maxEventCharacters = 256 * 1024;
const maxStringCharacters = 32 * 1024;

/** Returns the event unchanged if it is small enough. Otherwise truncates its long strings, then whole fields. */
export function limitEventSize<T extends object>(event: T): T {
  if (countCharacters(event) <= maxEventCharacters) return event;
  const truncatedEvent = truncateStrings(event) as T; // The shape is unchanged: only strings are shorter.
  if (countCharacters(truncatedEvent) <= maxEventCharacters) return truncatedEvent;
  const entries = Object.entries(truncatedEvent).map(([key, value]): [string, unknown] =>
    countCharacters(value) <= maxStringCharacters ? [key, value] : [key, truncateText(JSON.stringify(value))],
  );
  // Only `input`, `output` and `data` can be this large, and they accept any value.
  return Object.fromEntries(entries) as T;
}

function countCharacters(value: unknown): number {
  return JSON.stringify(value)?.length ?? 0;
}

function truncateStrings(value: unknown): unknown {
  if (typeof value === "string") return truncateText(value);
  if (Array.isArray(value)) return value.map(truncateStrings);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, truncateStrings(inner)]));
}

function truncateText(text: string): string {
  if (text.length <= maxStringCharacters) return text;
  return `${text.slice(0, maxStringCharacters).toWellFormed()}… (${text.length - maxStringCharacters} more characters)`;
}
