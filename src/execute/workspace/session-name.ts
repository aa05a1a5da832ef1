/** A session's id becomes a path: from whoever it comes, it stays a name. */
export function isSessionName(id: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$/.test(id);
}
