/** Builds a PostgreSQL array literal for `?::text[]`. The texts must be encoded, see ../text.ts. */
export function toTextArray(texts: readonly (string | null)[]): string {
  return `{${texts.map((text) => (text === null ? "null" : quote(text))).join(",")}}`;
}

function quote(text: string): string {
  // Most texts contain neither character, and checking is cheaper than replacing.
  const isPlain = !text.includes('"') && !text.includes("\\");
  return isPlain ? `"${text}"` : `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}
