import type { ErrorCode } from "./errors.ts";

/** A problem with one agent or profile. It is returned, not thrown, so that the others still load. */
export interface DefinitionFault {
  code: ErrorCode;
  /** null if the definition did not come from a file. */
  file: string | null;
  line: number | null;
  /** The faulty key, such as `permissions.mode`. Empty for the whole file. */
  path: string;
  message: string;
  next: string;
}

/** Formats a fault as one line: location, then message. */
export function describeFault({ file, line, message }: DefinitionFault): string {
  if (file === null) return message;
  return line === null ? `${file}: ${message}` : `${file}:${line}: ${message}`;
}
