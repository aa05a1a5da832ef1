import type { ServerResponse } from "node:http";
import { Refusal } from "./refusal.ts";
import { whenClosed } from "./when-closed.ts";

/** What the requests of one caller may take up at one coordinator at a time. */
export interface RequestLimits {
  /** Open at once, streams among them. */
  requests: number;
  /** Of answers that were written and that nobody has read yet. */
  unreadBytes: number;
  /** Open at once, of all callers together. */
  totalRequests: number;
  /** Of bodies in memory, of requests of runners too; 64 MB unless given. */
  bodyBytes?: number;
}

const requestLimits: RequestLimits = { requests: 500, unreadBytes: 32 * 1024 * 1024, totalRequests: 5000 };
/** Of the runners of one caller. Their answers are small, and adding up thousands each time is not. */
export const runnerLimits: RequestLimits = { requests: 7500, unreadBytes: Infinity, totalRequests: 9000 };

/**
 * Refuses a request of a caller that has too much open already. The place is free again once the answer is sent. Callers
 * without a token share one allowance, and every client is one of them before its token is sent. Their oldest request is
 * closed to make room, so that none of them can lock the others out.
 */
export type AdmitRequest = (caller: string, outgoing: ServerResponse, who?: { isStranger: boolean }) => void;

/** So few cannot hold much. Above it, the unread bytes of the caller are counted. */
const few = 8;

export function createRequestLimiter(limits: RequestLimits = requestLimits): AdmitRequest {
  const callers = new Map<string, Set<ServerResponse>>();
  let totalRequests = 0;
  return (caller, outgoing, who) => {
    const own = callers.get(caller) ?? new Set();
    if (who?.isStranger) makeRoom(own, limits);
    if (own.size >= limits.requests) throw tooMany(`${limits.requests} requests are open in this name`);
    if (own.size >= few && limits.unreadBytes < Infinity && unread(own) > limits.unreadBytes)
      throw tooMany(`Answers of more than ${limits.unreadBytes / 1024 / 1024} MB in this name were not read yet`);
    if (totalRequests >= limits.totalRequests) throw full();
    callers.set(caller, own.add(outgoing));
    totalRequests += 1;
    whenClosed(outgoing, () => {
      totalRequests -= 1;
      own.delete(outgoing);
      if (own.size === 0 && callers.get(caller) === own) callers.delete(caller);
    });
  };
}

function makeRoom(own: Set<ServerResponse>, limits: RequestLimits): void {
  for (const oldest of own) {
    if (own.size < limits.requests && (own.size < few || unread(own) <= limits.unreadBytes)) return;
    own.delete(oldest);
    oldest.destroy();
  }
}

function unread(answers: Iterable<ServerResponse>): number {
  let bytes = 0;
  for (const { writableLength } of answers) bytes += writableLength;
  return bytes;
}

function tooMany(what: string): Refusal {
  return new Refusal(429, "DROVER-LIM-001", `${what} at this coordinator.`, {
    headers: { "retry-after": "5" },
    next: "Read or close some of them first. One stream of GET /events has the events of all runs.",
  });
}

function full(): Refusal {
  return new Refusal(503, "DROVER-LIM-001", "Too many requests are open at this coordinator.", {
    headers: { "retry-after": "5" },
    next: "Ask again in a moment.",
  });
}
