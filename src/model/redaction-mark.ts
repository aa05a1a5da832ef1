/** The start of the mark that replaces a secret. */
export const redactionMarkStart = "[redacted:";

/** Whether the text is exactly one mark. A caller that sends a mark no longer has the secret itself. */
export function isRedactionMark(text: string): boolean {
  return /^\[redacted:[\w.-]{1,128}\]$/.test(text);
}

export function hasRedactionMark(text: string): boolean {
  return /\[redacted:[\w.-]{1,128}\]/.test(text);
}
