/** Converts a value to JSON that is safe to print on a terminal: escapes control characters, which keeps the meaning. */
export function toJsonLine(value: unknown, indent = 0): string {
  return `${escapeControlCharacters(JSON.stringify(value, null, indent))}\n`;
}

/** Escapes control characters in JSON text. JSON.stringify itself escapes only those below U+0020. */
export function escapeControlCharacters(json: string): string {
  return json.replaceAll(
    // oxlint-disable-next-line no-control-regex
    /[\u007f-\u009f]|\p{Bidi_Control}/gu,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
