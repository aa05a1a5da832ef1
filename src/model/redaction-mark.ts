/** How the mark begins that stands where a secret was. */
export const redactionMarkStart = "[redacted:";

/** Whether the whole text is one mark. A caller that sends a mark as a value no longer has the secret itself. */
export function isRedactionMark(text: string): boolean {
  return /^\[redacted:[\w.-]{1,128}\]$/.test(text);
}

export function hasRedactionMark(text: string): boolean {
  return /\[redacted:[\w.-]{1,128}\]/.test(text);
}
