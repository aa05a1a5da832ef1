/** Whether the id is safe as a file name. Session ids become directory names. */
export function isSessionName(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(id);
}
