/** For programs and people alike: what a terminal would obey or reorder is written out, and means the same as before. */
export function jsonLine(value: unknown, indent = 0): string {
  return `${escapeControlCharacters(JSON.stringify(value, null, indent))}\n`;
}

/** For JSON that is text already. JSON.stringify itself escapes only what is below U+0020. */
export function escapeControlCharacters(json: string): string {
  return json.replaceAll(
    // oxlint-disable-next-line no-control-regex
    /[\u007f-\u009f]|\p{Bidi_Control}/gu,
    (one) => `\\u${one.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
