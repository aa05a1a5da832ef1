/** How the mark begins that stands where a secret was. */
export const markStart = "[redacted:";

/** Whether the whole text is one mark. A caller that sends a mark as a value no longer has the secret itself. */
export function isMark(text: string): boolean {
  return /^\[redacted:[\w.-]{1,128}\]$/.test(text);
}

export function hasMark(text: string): boolean {
  return /\[redacted:[\w.-]{1,128}\]/.test(text);
}
