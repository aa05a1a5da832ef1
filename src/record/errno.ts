/** Is this the file system's complaint of that name? */
export function isErrno(fault: unknown, code: string): boolean {
  return fault instanceof Error && Reflect.get(fault, "code") === code;
}
