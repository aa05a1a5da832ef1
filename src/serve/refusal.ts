import { type ErrorCode, errorCodes, HostError, RequestError } from "../model/errors.ts";
import type { Problem, ProblemFault } from "../wire/problem.ts";

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
      ...(options.next ? { next: options.next } : {}),
    };
    this.headers = options.headers ?? {};
  }
}

export function notFound(what: string, path = "path"): Refusal {
  return new Refusal(404, "DROVER-API-014", `There is no ${what} with that id, or it is not yours.`, {
    faults: [{ path, message: "not found" }],
  });
}

export function problemResponse(problem: Problem, headers: Record<string, string> = {}): Response {
  return new Response(JSON.stringify(problem), {
    status: problem.status,
    headers: { "content-type": "application/problem+json", "cache-control": "no-store", ...headers },
  });
}

/** What is told of an error that no handler expected. Details of a defect stay in the log. */
export function refusalOf(error: unknown): Refusal {
  if (error instanceof Refusal) return error;
  if (error instanceof RequestError) {
    return new Refusal(400, error.code, error.message, {
      ...(error.field ? { faults: [{ path: error.field, message: error.message }] } : {}),
      ...(error.next ? { next: error.next } : {}),
    });
  }
  if (error instanceof HostError) {
    return new Refusal(503, error.code, error.message, {
      headers: { "retry-after": "1" },
      ...(error.next ? { next: error.next } : {}),
    });
  }
  return new Refusal(500, "DROVER-BUG-001", "Something went wrong inside Drover; its log says what.");
}
