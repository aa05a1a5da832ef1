/** The code of a system error, e.g. ENOENT. Rethrows any other error. */
export function requireErrorCode(error: unknown): string {
  if (error instanceof Error && "code" in error) return String(error.code);
  throw error;
}
