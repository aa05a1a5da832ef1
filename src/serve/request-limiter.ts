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
export type AdmitRequest = (caller: string, outgoing: ServerResponse, options?: { isAnonymous: boolean }) => Admission;

/**
 * Limits the unread bytes of the caller again while its request is open. At admission, the responses to its other open
 * requests do not exist yet.
 */
export interface Admission {
  /** Throws the same refusal as the admission if the caller has too many unread bytes. */
  checkUnread(): void;
  /** Call before sending a response of this size. Returns the refusal to send instead, or null. */
  admitResponse(bytes: number): Refusal | null;
}

/** This many requests cannot occupy much memory. Above it, the caller's unread bytes are counted. */
const alwaysAllowedRequests = 8;
/** Responses up to this size, to as many requests as a caller may have open, do not occupy much memory either. */
const alwaysAllowedBytes = 64 * 1024;

export function createRequestLimiter(limits: RequestLimits = requestLimits): AdmitRequest {
  const callers = new Map<string, OpenRequests>();
  let totalRequests = 0;
  return (caller, outgoing, options) => {
    const isAnonymous = options?.isAnonymous === true;
    const requests: OpenRequests = callers.get(caller) ?? new Map();
    if (isAnonymous) makeRoom(requests, limits);
    if (requests.size >= limits.requests) throw tooMany(`This caller already has ${limits.requests} open requests`);
    const checkUnread = (): void => {
      if (isAnonymous) discardUnread(requests, outgoing, limits);
      if (requests.size >= alwaysAllowedRequests && hasTooManyUnreadBytes(requests, limits))
        throw tooManyUnread(limits);
    };
    checkUnread();
    if (totalRequests >= limits.totalRequests) throw tooManyInTotal();
    callers.set(caller, requests.set(outgoing, 0));
    totalRequests += 1;
    whenClosed(outgoing, () => {
      totalRequests -= 1;
      requests.delete(outgoing);
      if (requests.size === 0 && callers.get(caller) === requests) callers.delete(caller);
    });
    return {
      checkUnread,
      admitResponse(bytes) {
        if (bytes <= alwaysAllowedBytes || outgoing.destroyed) return null;
        if (isAnonymous) discardUnread(requests, outgoing, limits);
        if (hasTooManyUnreadBytes(requests, limits)) return tooManyUnread(limits);
        requests.set(outgoing, bytes);
        return null;
      },
    };
  };
}

/** The open requests of one caller, oldest first, with the size of a response that is about to be written. */
type OpenRequests = Map<ServerResponse, number>;

function makeRoom(requests: OpenRequests, limits: RequestLimits): void {
  for (const oldest of requests.keys()) {
    if (
      requests.size < limits.requests &&
      (requests.size < alwaysAllowedRequests || !hasTooManyUnreadBytes(requests, limits))
    )
      return;
    requests.delete(oldest);
    oldest.destroy();
  }
}

function discardUnread(requests: OpenRequests, except: ServerResponse, limits: RequestLimits): void {
  for (const oldest of requests.keys()) {
    if (!hasTooManyUnreadBytes(requests, limits)) return;
    if (oldest === except) continue;
    requests.delete(oldest);
    oldest.destroy();
  }
}

function hasTooManyUnreadBytes(requests: OpenRequests, { unreadBytes }: RequestLimits): boolean {
  if (unreadBytes === Infinity) return false;
  let bytes = 0;
  for (const [outgoing, renderedBytes] of requests)
    bytes += outgoing.writableLength + (outgoing.writableEnded ? 0 : renderedBytes);
  return bytes > unreadBytes;
}

function tooManyUnread({ unreadBytes }: RequestLimits): Refusal {
  return tooMany(`This caller has more than ${unreadBytes / 1024 / 1024} MB of unread responses`);
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
