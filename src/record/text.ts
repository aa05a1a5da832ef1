/**
 * Text columns. A bound string ends at its first NUL and loses lone surrogates, so text with a NUL or
 * any surrogate is stored as a JSON string, which begins with a quote; so is text that begins with a
 * quote itself. All other text is stored as it is. Equal texts are stored equal, so that columns can
 * be searched.
 */
export function toColumn(text: string): string;
export function toColumn(text: string | null): string | null;
export function toColumn(text: string | null): string | null {
  if (text === null) return null;
  return needsEscape.test(text) ? JSON.stringify(text) : text;
}

export function fromColumn(stored: string): string {
  // Whatever begins with a quote was written by toColumn, as a JSON string.
  return stored.startsWith('"') ? (JSON.parse(stored) as string) : stored;
}

/** Of a column that may be null, or of a row that is not there. */
export function textOrNull(stored: unknown): string | null {
  return typeof stored === "string" ? fromColumn(stored) : null;
}

// Surrogates of a pair too: telling lone ones apart costs a cold process a millisecond.
const needsEscape = /^"|[\0\ud800-\udfff]/;
