/** Reports whether `fault` is a system error with this code, such as "ENOENT". */
export function isErrno(fault: unknown, code: string): boolean {
  return fault instanceof Error && Reflect.get(fault, "code") === code;
}
