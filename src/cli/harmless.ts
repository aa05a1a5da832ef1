/** Keeps line breaks, tabs and colours; takes out every other control sequence, which could redraw a terminal. */
export function harmless(text: string): string {
  // oxlint-disable-next-line no-control-regex
  return text.replaceAll(/\u001b(?!\[[\d;]*m)|[\u0000-\u0008\u000b-\u001a\u001c-\u001f\u007f-\u009f]/g, "");
}
