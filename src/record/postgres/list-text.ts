/** A PostgreSQL array literal for `?::text[]`. Texts are as stored, see ../text.ts. */
export function listText(texts: readonly (string | null)[]): string {
  return `{${texts.map((text) => (text === null ? "null" : quoted(text))).join(",")}}`;
}

function quoted(text: string): string {
  // Most texts contain neither, and checking is cheaper than replacing.
  const plain = !text.includes('"') && !text.includes("\\");
  return plain ? `"${text}"` : `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}
