/** A string as TOML writes it. JSON's escapes are TOML's too, save for one character that JSON leaves as it is. */
export function tomlString(text: string): string {
  return JSON.stringify(text).replaceAll("\u007f", String.raw`\u007f`);
}
