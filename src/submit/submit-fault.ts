import type { ErrorCode } from "../model/errors.ts";

/** Describes why a request was refused, with the fields of the HTTP response. */
export interface SubmitFault {
  status: number;
  code: ErrorCode;
  message: string;
  faults: { path: string; message: string }[];
  next?: string;
  /** Set for status 429. */
  retry_after_seconds?: number;
}

export function buildSubmitFault(
  status: number,
  code: ErrorCode,
  message: string,
  faults: SubmitFault["faults"],
  next?: string,
): SubmitFault {
  return { status, code, message, faults, ...(next === undefined ? {} : { next }) };
}

export function refuse(...parts: Parameters<typeof buildSubmitFault>): { ok: false; fault: SubmitFault } {
  return { ok: false, fault: buildSubmitFault(...parts) };
}

export function isSubmitFault<T extends object>(value: T | SubmitFault): value is SubmitFault {
  return "faults" in value && "status" in value;
}
