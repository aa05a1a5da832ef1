import { type ErrorCode, errorCodes, HostError, RequestError } from "../model/errors.ts";

/** The body of every error response (application/problem+json). */
export interface Problem {
  title: string;
  status: number;
  code: ErrorCode;
  detail: string;
  /** The invalid parts of the request, by JSON path, such as `body.demands.tags[0]`, `query.limit` or `header.host`. */
  faults: ProblemFault[];
  /** What to do about it. */
  next?: string;
}

export interface ProblemFault {
  path: string;
  message: string;
}

/** The caller can fix a 4xx (RequestError); anything else is for the operator (HostError). */
export function errorFromProblem(problem: Problem): RequestError | HostError {
  const first = problem.faults[0];
  const details = {
    code: problem.code,
    message: problem.detail,
    cause: problem,
    ...(first ? { field: first.path } : {}),
    ...(problem.next ? { next: problem.next } : {}),
  };
  return problem.status < 500 ? new RequestError(details) : new HostError(details);
}

/** Reads an error response. A response that is not Drover's, such as a proxy's, becomes a Problem too. */
export function readProblem(status: number, text: string): Problem {
  const parsed = parseObject(text);
  const code = parsed?.["code"];
  if (parsed && typeof code === "string" && code in errorCodes) {
    return {
      title: toText(parsed["title"]),
      status,
      // Checked against the table above.
      code: code as ErrorCode,
      detail: toText(parsed["detail"]),
      faults: Array.isArray(parsed["faults"]) ? parsed["faults"].filter(isFault) : [],
      ...(typeof parsed["next"] === "string" ? { next: parsed["next"] } : {}),
    };
  }
  return {
    title: errorCodes["DROVER-API-028"],
    status,
    code: "DROVER-API-028",
    detail: `A response with status ${status} did not come from Drover: ${text.slice(0, 200)}`,
    faults: [],
    next: "Check that the address belongs to a Drover coordinator.",
  };
}

function isFault(value: unknown): value is ProblemFault {
  return (
    typeof value === "object" &&
    value !== null &&
    typeof Reflect.get(value, "path") === "string" &&
    typeof Reflect.get(value, "message") === "string"
  );
}

function parseObject(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    // The keys of an object are strings.
    return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : null;
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
}

function toText(value: unknown): string {
  return typeof value === "string" ? value : "";
}
