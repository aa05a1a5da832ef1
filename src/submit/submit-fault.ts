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

export function submitFault(
  status: number,
  code: ErrorCode,
  message: string,
  faults: SubmitFault["faults"],
  next?: string,
): SubmitFault {
  return { status, code, message, faults, ...(next === undefined ? {} : { next }) };
}

export function fail(...parts: Parameters<typeof submitFault>): { ok: false; fault: SubmitFault } {
  return { ok: false, fault: submitFault(...parts) };
}

export function isSubmitFault<T extends object>(value: T | SubmitFault): value is SubmitFault {
  return "faults" in value && "status" in value;
}
