import type { ErrorCode } from "./errors.ts";

/** What is wrong with one agent or profile. Data, not an exception: the others still load. */
export interface DefinitionFault {
  code: ErrorCode;
  /** null where it came by other ways than a file. */
  file: string | null;
  line: number | null;
  /** The key at fault, as `permissions.mode`; empty for the whole file. */
  path: string;
  message: string;
  next: string;
}

/** One line for a person: where, then what. */
export function describeFault({ file, line, message }: DefinitionFault): string {
  if (file === null) return message;
  return line === null ? `${file}: ${message}` : `${file}:${line}: ${message}`;
}
