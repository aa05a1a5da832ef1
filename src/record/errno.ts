/** Reports whether `error` is a system error with this code, such as "ENOENT". */
export function isErrno(error: unknown, code: string): boolean {
  return error instanceof Error && Reflect.get(error, "code") === code;
}
