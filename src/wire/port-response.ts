import type { IncomingMessage } from "node:http";
import { type ErrorCode, HostError } from "../model/errors.ts";
import { type PortConflict, PortError } from "../model/port-error.ts";
import { type Problem, readProblem } from "./problem.ts";

/** Returns the coordinator's response or throws a PortError whose cause is the Problem. Calls `onBytes` for each chunk. */
export async function readResponse<T>(response: IncomingMessage, onBytes?: () => void): Promise<T> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response) {
      onBytes?.();
      // Without an encoding, chunks are buffers.
      chunks.push(chunk as Buffer);
    }
  } catch (cause) {
    throw new PortError("away", "the response was cut off", cause);
  }
  const text = Buffer.concat(chunks).toString("utf8");
  const status = response.statusCode ?? 0;
  if (status >= 200 && status < 300) return parseBody<T>(text);
  const problem = readProblem(status, text);
  throw new PortError(toConflict(problem), problem.detail, problem);
}

/** Creates the error for a request that got no response. */
export function noResponse(url: string, cause: Error): PortError {
  if (cause instanceof HostError) return new PortError("unproven", cause.message, cause);
  return new PortError("away", `${url} did not respond: ${cause.message}`, cause);
}

function parseBody<T>(text: string): T {
  try {
    // The coordinator serializes the port's own types; registration has checked the protocol version.
    return JSON.parse(text) as T;
  } catch (cause) {
    throw new PortError("away", "the response is not JSON", cause);
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

/** A response that is not Drover's, most likely a proxy's, counts as away. So do server errors and throttling. */
function toConflict(problem: Problem): PortConflict {
  const conflict = conflicts[problem.code];
  if (conflict) return conflict;
  return problem.status >= 500 || problem.status === 429 || problem.code === "DROVER-API-028" ? "away" : "refused";
}
