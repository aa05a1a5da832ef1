import { APICallError, LoadAPIKeyError } from "@ai-sdk/provider";
import type { ProviderFault } from "../model/provider.ts";

/** The settings of a provider that error messages mention. */
export interface Setup {
  provider: string;
  /** The variable with its key; null if it needs none. */
  variable: string | null;
}

const maxVendorCharacters = 500;

export const cancelled: ProviderFault = { kind: "network", message: "The request was cancelled." };

/** Converts an error from a call to a vendor's service. The order of the checks matters, as the comments explain. */
export function toProviderFault(error: unknown, setup: Setup, signal: AbortSignal): ProviderFault {
  // An abort looks like a failed call with status 200.
  if (signal.aborted) return cancelled;
  if (LoadAPIKeyError.isInstance(error)) return authentication(setup, "no key is set");
  if (APICallError.isInstance(error)) return toCallFault(error, setup);
  const type = readField(error, "type");
  if (
    type === "overloaded_error" ||
    type === "rate_limit_error" ||
    [429, 503].includes(Number(readField(error, "code")))
  )
    return rateLimit(setup, readMessage(error), undefined);
  if (/too many requests|throttl/i.test(readMessage(error))) return rateLimit(setup, readMessage(error), undefined);
  // These are errors of fetch itself: no connection, or a broken one.
  if (/^(?:terminated|fetch failed)$/.test(readMessage(error))) return unreachable(setup, readMessage(error));
  if (type === "authentication_error" || type === "permission_error") return authentication(setup, readMessage(error));
  if (/AWS SigV4|credentials/i.test(readMessage(error))) return authentication(setup, readMessage(error));
  return unusableAnswer(setup, readMessage(error));
}

export function unusableAnswer({ provider }: Setup, details: string): ProviderFault {
  return {
    kind: "invalid_response",
    message: `${provider} sent an unusable answer: ${shorten(details)}. Try again; if it happens every time, check the model's name and the base URL.`,
  };
}

function toCallFault(error: APICallError, setup: Setup): ProviderFault {
  const { statusCode: status, responseHeaders: headers = {} } = error;
  if (status === 401 || status === 403) return authentication(setup, readMessage(error));
  if (status === 429 || status === 529) return rateLimit(setup, readMessage(error), retryAfterMs(headers));
  // A retryable error with status 200: the connection broke in the middle of the answer.
  const isCutOff = status === 200 && error.isRetryable;
  if (status === undefined || status >= 500 || status === 408 || isCutOff)
    return unreachable(setup, `${status ?? "no answer"}: ${readMessage(error)}`);
  return rejectedRequest(setup, `${status}: ${readMessage(error)}`, `${error.message} ${error.responseBody ?? ""}`);
}

export function unreachable({ provider }: Setup, details: string): ProviderFault {
  return {
    kind: "network",
    message: `${provider} cannot be reached or has an internal error (${shorten(details)}). Check the network and the base URL, or try again later.`,
  };
}

/** The service rejected the request itself, not its sender. `response` is everything the service reported. */
export function rejectedRequest(setup: Setup, details: string, response: string): ProviderFault {
  const fault = unusableAnswer(setup, details);
  const isTooLong = /too long|context length|context_length|maximum context/i.test(response);
  return isTooLong ? { ...fault, too_long: true } : fault;
}

export function authentication({ provider, variable }: Setup, details: string): ProviderFault {
  const setting = variable === null ? "its login" : `${variable} in the runner's environment`;
  return {
    kind: "authentication",
    message: `${provider} rejected the key or login: ${shorten(details)}. Check ${setting}.`,
  };
}

export function rateLimit({ provider }: Setup, details: string, retry_after_ms: number | undefined): ProviderFault {
  const when = retry_after_ms === undefined ? "later" : `in ${Math.ceil(retry_after_ms / 1000)} s`;
  return {
    kind: "rate_limit",
    message: `${provider} accepts no more requests right now: ${shorten(details)}. Try again ${when}.`,
    ...(retry_after_ms === undefined ? {} : { retry_after_ms }),
  };
}

/** Reads `retry-after-ms`, or else `retry-after`, which is a number of seconds or a date. */
function retryAfterMs(headers: Readonly<Record<string, string>>): number | undefined {
  const ms = Number(headers["retry-after-ms"] ?? Number.NaN);
  if (Number.isFinite(ms)) return Math.max(0, ms);
  const retryAfter = headers["retry-after"];
  if (retryAfter === undefined) return undefined;
  const waitMs = Number.isFinite(Number(retryAfter)) ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - Date.now();
  return Number.isFinite(waitMs) ? Math.max(0, waitMs) : undefined;
}

function readMessage(error: unknown): string {
  const message = readField(error, "message");
  return typeof message === "string" && message !== "" ? message : "no message";
}

function shorten(text: string): string {
  return text.length > maxVendorCharacters ? `${text.slice(0, maxVendorCharacters)}...` : text.replace(/\.$/, "");
}

function readField(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
