/** Quotes a string for TOML. JSON's escapes are valid in TOML, but JSON does not escape DEL. */
export function toTomlString(text: string): string {
  return JSON.stringify(text).replaceAll("\u007f", String.raw`\u007f`);
}
