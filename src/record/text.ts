/**
 * Encoding of text columns. A bound string stops at its first NUL and loses lone surrogates, so text with a NUL or any
 * surrogate is stored as a JSON string, which begins with a quote. Text that itself begins with a quote is encoded too.
 * All other text is stored unchanged. Equal texts have equal encodings, so columns can be compared.
 */
export function toColumn(text: string): string;
export function toColumn(text: string | null): string | null;
export function toColumn(text: string | null): string | null {
  if (text === null) return null;
  return needsEscape.test(text) ? JSON.stringify(text) : text;
}

export function fromColumn(stored: string): string {
  // Only toColumn writes text that begins with a quote, always as a JSON string.
  return stored.startsWith('"') ? (JSON.parse(stored) as string) : stored;
}

/** Decodes a column that may be null or missing. */
export function textOrNull(stored: unknown): string | null {
  return typeof stored === "string" ? fromColumn(stored) : null;
}

// Matches paired surrogates too: finding only lone ones costs a cold process a millisecond.
const needsEscape = /^"|[\0\ud800-\udfff]/;
