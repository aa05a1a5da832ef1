import type { IncomingMessage } from "node:http";
import { type ErrorCode, HostError } from "../model/errors.ts";
import { type PortConflict, PortError } from "../model/port-error.ts";
import { type Problem, readProblem } from "./problem.ts";

/** What the coordinator answered, or the PortError that it means; a Problem is its cause. `onBytes`: with each piece of it. */
export async function readResponse<T>(response: IncomingMessage, onBytes?: () => void): Promise<T> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response) {
      onBytes?.();
      chunks.push(chunk as Buffer); // no encoding is set, so chunks are buffers
    }
  } catch (cause) {
    throw new PortError("away", "the answer was cut off", cause);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return parseAnswer<T>(text);
  const problem = readProblem(status, text);
  throw new PortError(conflictOf(problem), problem.detail, problem);
}

/** What became of a request without an answer. */
export function noResponse(url: string, cause: Error): PortError {
  if (cause instanceof HostError) return new PortError("unproven", cause.message, cause);
  return new PortError("away", `${url} did not answer: ${cause.message}`, cause);
}

function parseAnswer<T>(text: string): T {
  try {
    // made from the port's own types by the coordinator, whose protocol version was agreed at registration
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new PortError("away", "the answer is not JSON", cause);
  }
}

const conflicts: Partial<Record<ErrorCode, PortConflict>> = {
  "DROVER-API-016": "unknown_runner",
  "DROVER-API-017": "old_epoch",
  "DROVER-API-018": "duplicate_runner",
  "DROVER-API-009": "unauthorized",
  "DROVER-API-010": "unauthorized",
  "DROVER-API-011": "unauthorized",
};

/** A stranger's answer (a proxy's, most likely) counts as away, like a server's own fault and one that is too busy. */
function conflictOf(problem: Problem): PortConflict {
  const known = conflicts[problem.code];
  if (known) return known;
  return problem.status >= 500 || problem.status === 429 || problem.code === "DROVER-API-028" ? "away" : "refused";
}
