import type { ServerResponse } from "node:http";
import { Refusal } from "./refusal.ts";
import { whenClosed } from "./when-closed.ts";

/** Limits on the open requests of one caller at one coordinator. */
export interface RequestLimits {
  /** Open requests, including streams. */
  requests: number;
  /** Response bytes that were written but not yet read by the client. */
  unreadBytes: number;
  /** Open requests of all callers together. */
  totalRequests: number;
  /** Request bodies in memory, including those of runners. Defaults to 64 MB. */
  bodyBytes?: number;
}

const requestLimits: RequestLimits = { requests: 500, unreadBytes: 32 * 1024 * 1024, totalRequests: 5000 };
/** For the runners of one caller. Their responses are small, and adding up thousands of them each time is not cheap. */
export const runnerLimits: RequestLimits = { requests: 7500, unreadBytes: Infinity, totalRequests: 9000 };

/**
 * Refuses a request if its caller has too many open requests or unread bytes. A request counts until its response is sent.
 * Anonymous callers of one address share one allowance, as does every client there that has not signed in yet. Their
 * oldest request is closed to make room, so none of them can lock the others out.
 */
export type AdmitRequest = (caller: string, outgoing: ServerResponse, options?: { isAnonymous: boolean }) => void;

/** This many requests cannot occupy much memory. Above it, the caller's unread bytes are counted. */
const alwaysAllowedRequests = 8;

export function createRequestLimiter(limits: RequestLimits = requestLimits): AdmitRequest {
  const callers = new Map<string, Set<ServerResponse>>();
  let totalRequests = 0;
  return (caller, outgoing, options) => {
    const requests = callers.get(caller) ?? new Set();
    if (options?.isAnonymous) makeRoom(requests, limits);
    if (requests.size >= limits.requests) throw tooMany(`This caller already has ${limits.requests} open requests`);
    if (
      requests.size >= alwaysAllowedRequests &&
      limits.unreadBytes < Infinity &&
      countUnreadBytes(requests) > limits.unreadBytes
    )
      throw tooMany(`This caller has more than ${limits.unreadBytes / 1024 / 1024} MB of unread responses`);
    if (totalRequests >= limits.totalRequests) throw tooManyInTotal();
    callers.set(caller, requests.add(outgoing));
    totalRequests += 1;
    whenClosed(outgoing, () => {
      totalRequests -= 1;
      requests.delete(outgoing);
      if (requests.size === 0 && callers.get(caller) === requests) callers.delete(caller);
    });
  };
}

function makeRoom(requests: Set<ServerResponse>, limits: RequestLimits): void {
  for (const oldest of requests) {
    if (
      requests.size < limits.requests &&
      (requests.size < alwaysAllowedRequests || countUnreadBytes(requests) <= limits.unreadBytes)
    )
      return;
    requests.delete(oldest);
    oldest.destroy();
  }
}

function countUnreadBytes(responses: Iterable<ServerResponse>): number {
  let bytes = 0;
  for (const { writableLength } of responses) bytes += writableLength;
  return bytes;
}

function tooMany(what: string): Refusal {
  return new Refusal(429, "DROVER-LIM-001", `${what} at this coordinator.`, {
    headers: { "retry-after": "5" },
    next: "Read or close some of them first. A single GET /events stream carries the events of all runs.",
  });
}

function tooManyInTotal(): Refusal {
  return new Refusal(503, "DROVER-LIM-001", "This coordinator has too many open requests.", {
    headers: { "retry-after": "5" },
    next: "Try again in a moment.",
  });
}
