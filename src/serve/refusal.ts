import { type ErrorCode, errorCodes, HostError, RequestError } from "../model/errors.ts";
import type { Problem, ProblemFault } from "../wire/problem.ts";
import { nextStep } from "./next-step.ts";

interface RequestFault {
  status: number;
  code: ErrorCode;
  message: string;
  faults: ProblemFault[];
  next?: string;
  retry_after_seconds?: number;
}

interface RefusalOptions {
  faults?: ProblemFault[];
  next?: string;
  headers?: Record<string, string>;
}

/** How a handler says no. Anything else that is thrown is our own fault and answered as such. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly problem: Problem;
  readonly headers: Record<string, string>;
  constructor(status: number, code: ErrorCode, detail: string, options: RefusalOptions = {}) {
    super(detail);
    this.problem = {
      title: errorCodes[code],
      status,
      code,
      detail,
      faults: options.faults ?? [],
      next: options.next ?? nextStep(code),
    };
    this.headers = options.headers ?? {};
  }
}

export function notFound(what: string, path = "path"): Refusal {
  return new Refusal(404, "DROVER-API-014", `There is no ${what} with that id, or it is not yours.`, {
    faults: [{ path, message: "not found" }],
  });
}

/** What a part of Drover below the API has to say against a request. */
export function refusalFromFault({ status, code, message, faults, next, retry_after_seconds }: RequestFault): Refusal {
  return new Refusal(status, code, message, {
    faults,
    ...(next ? { next } : {}),
    ...(retry_after_seconds === undefined ? {} : { headers: { "retry-after": String(retry_after_seconds) } }),
  });
}

/** The caller has used up what there is of the schema checker's time for each. */
export function tooManyChecks(retryAfterSeconds: number): Refusal {
  const detail = "This cannot be checked now: this caller has asked for too many slow checks.";
  return new Refusal(429, "DROVER-LIM-002", detail, {
    headers: { "retry-after": String(retryAfterSeconds) },
    next: `Ask again in ${retryAfterSeconds} s.`,
  });
}

/** What is told of an error that no handler expected. Details of a defect stay in the log. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof RequestError) {
    return new Refusal(400, error.code, error.message, {
      ...(error.field ? { faults: [{ path: error.field, message: error.message }] } : {}),
      ...(error.next ? { next: error.next } : {}),
    });
  }
  if (error instanceof HostError) {
    // the message and what to do have addresses and paths in them, and this is told to whoever asks
    return new Refusal(503, error.code, `This cannot be done now: ${errorCodes[error.code]}.`, {
      headers: { "retry-after": "1" },
      next: "Ask again in a moment. The coordinator's log says why.",
    });
  }
  return new Refusal(500, "DROVER-BUG-001", "Something went wrong inside Drover; its log says what.");
}
