import { type ErrorCode, errorCodes, HostError, RequestError } from "../model/errors.ts";
import type { Problem, ProblemFault } from "../wire/problem.ts";
import { boundProblem, refusalLimits } from "./bound-problem.ts";
import { getDefaultNextStep } from "./next-step.ts";

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

/** An error response that a handler intends, with a bounded size. A RequestError becomes a 400; any other error becomes a 5xx. */
export class Refusal extends Error {
  override readonly name = "Refusal";
  readonly problem: Problem;
  readonly headers: Record<string, string>;
  constructor(status: number, code: ErrorCode, detail: string, options: RefusalOptions = {}) {
    const problem = boundProblem(
      {
        title: errorCodes[code],
        status,
        code,
        detail,
        faults: options.faults ?? [],
        next: options.next ?? getDefaultNextStep(code),
      },
      refusalLimits,
    );
    super(problem.detail);
    this.problem = problem;
    this.headers = options.headers ?? {};
  }
}

export function notFound(what: string, path = "path"): Refusal {
  return new Refusal(404, "DROVER-API-014", `No such ${what}, or it belongs to someone else.`, {
    faults: [{ path, message: "not found" }],
  });
}

/** Converts a fault that a lower layer found in a request. */
export function refusalFromFault({ status, code, message, faults, next, retry_after_seconds }: RequestFault): Refusal {
  return new Refusal(status, code, message, {
    faults,
    ...(next ? { next } : {}),
    ...(retry_after_seconds === undefined ? {} : { headers: { "retry-after": String(retry_after_seconds) } }),
  });
}

/** Refuses a caller that has used up its share of the schema checker's time. */
export function tooManyChecks(retryAfterSeconds: number): Refusal {
  const detail = "The schema cannot be checked now: this caller has requested too many slow checks.";
  return new Refusal(429, "DROVER-LIM-002", detail, {
    headers: { "retry-after": String(retryAfterSeconds) },
    next: `Try again in ${retryAfterSeconds} s.`,
  });
}

/** Converts any error to a response. The details of a defect stay in the log. */
export function toRefusal(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof RequestError) {
    return new Refusal(400, error.code, error.message, {
      ...(error.field ? { faults: [{ path: error.field, message: error.message }] } : {}),
      ...(error.next ? { next: error.next } : {}),
    });
  }
  if (error instanceof HostError) {
    // The message and the next step may contain addresses and paths, which a caller must not see.
    return new Refusal(503, error.code, `Temporarily unavailable: ${errorCodes[error.code]}.`, {
      headers: { "retry-after": "1" },
      next: "Try again in a moment. The coordinator's log has the cause.",
    });
  }
  return new Refusal(500, "DROVER-BUG-001", "Internal error. The coordinator's log has the details.");
}
