/** A list of texts as PostgreSQL reads one: a value for `?::text[]`. Texts are as they are stored, see ../text.ts. */
export function listText(texts: readonly (string | null)[]): string {
  return `{${texts.map((text) => (text === null ? "null" : quoted(text))).join(",")}}`;
}

function quoted(text: string): string {
  // Most have neither, and looking is cheaper than replacing.
  const plain = !text.includes('"') && !text.includes("\\");
  return plain ? `"${text}"` : `"${text.replaceAll(/["\\]/g, "\\$&")}"`;
}
