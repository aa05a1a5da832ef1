/** ENOENT and its like; throws what is not an error of the system. */
export function errorCode(error: unknown): string {
  if (error instanceof Error && "code" in error) return String(error.code);
  throw error;
}
