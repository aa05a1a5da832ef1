/** Keeps line breaks, tabs and colours. Every other control sequence could redraw a terminal, or act on it. */
export function stripControlCharacters(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/\u001b(?!\[[\d;]*m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g, "");
}
