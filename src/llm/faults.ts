import { APICallError, LoadAPIKeyError } from "@ai-sdk/provider";
import type { ProviderFault } from "../model/provider.ts";

/** What error messages mention about a provider. */
export interface ProviderInfo {
  provider: string;
  /** The variable with its key; null if it needs none. */
  variable: string | null;
}

const maxDetailCharacters = 500;

export const cancelled: ProviderFault = { kind: "network", message: "The request was cancelled." };

/** Converts an error from a call to a model service. The order of the checks matters, as the comments explain. */
export function toProviderFault(error: unknown, providerInfo: ProviderInfo, signal: AbortSignal): ProviderFault {
  // An abort looks like a failed call with status 200.
  if (signal.aborted) return cancelled;
  if (LoadAPIKeyError.isInstance(error)) return toAuthenticationFault(providerInfo, "no key is set");
  if (APICallError.isInstance(error)) return toCallFault(error, providerInfo);
  const type = readField(error, "type");
  if (
    type === "overloaded_error" ||
    type === "rate_limit_error" ||
    [429, 503].includes(Number(readField(error, "code")))
  )
    return toRateLimitFault(providerInfo, readMessage(error), undefined);
  if (/too many requests|throttl/i.test(readMessage(error)))
    return toRateLimitFault(providerInfo, readMessage(error), undefined);
  // Errors of fetch itself: there is no connection, or it broke.
  if (/^(?:terminated|fetch failed)$/.test(readMessage(error)))
    return toUnreachableFault(providerInfo, readMessage(error));
  if (type === "authentication_error" || type === "permission_error")
    return toAuthenticationFault(providerInfo, readMessage(error));
  if (/AWS SigV4|credentials/i.test(readMessage(error))) return toAuthenticationFault(providerInfo, readMessage(error));
  return toUnusableAnswerFault(providerInfo, readMessage(error));
}

export function toUnusableAnswerFault({ provider }: ProviderInfo, details: string): ProviderFault {
  return {
    kind: "invalid_response",
    message: `${provider} sent an unusable answer: ${truncateDetails(details)}. Try again; if it happens every time, check the model's name and the base URL.`,
  };
}

function toCallFault(error: APICallError, providerInfo: ProviderInfo): ProviderFault {
  const { statusCode: status, responseHeaders: headers = {} } = error;
  if (status === 401 || status === 403) return toAuthenticationFault(providerInfo, readMessage(error));
  if (status === 429 || status === 529)
    return toRateLimitFault(providerInfo, readMessage(error), readRetryAfterMs(headers));
  // A retryable error with status 200 means that the connection broke in the middle of the answer.
  const isCutOff = status === 200 && error.isRetryable;
  if (status === undefined || status >= 500 || status === 408 || isCutOff)
    return toUnreachableFault(providerInfo, `${status ?? "no answer"}: ${readMessage(error)}`);
  return toRejectedRequestFault(
    providerInfo,
    `${status}: ${readMessage(error)}`,
    `${error.message} ${error.responseBody ?? ""}`,
  );
}

export function toUnreachableFault({ provider }: ProviderInfo, details: string): ProviderFault {
  return {
    kind: "network",
    message: `${provider} cannot be reached or has an internal error (${truncateDetails(details)}). Check the network and the base URL, or try again later.`,
  };
}

/** The service rejected the request itself, not its sender. `response` is everything the service reported. */
export function toRejectedRequestFault(providerInfo: ProviderInfo, details: string, response: string): ProviderFault {
  const fault = toUnusableAnswerFault(providerInfo, details);
  const isTooLong = /too long|context length|context_length|maximum context/i.test(response);
  return isTooLong ? { ...fault, too_long: true } : fault;
}

export function toAuthenticationFault({ provider, variable }: ProviderInfo, details: string): ProviderFault {
  const setting = variable === null ? "its login" : `${variable} in the runner's environment`;
  return {
    kind: "authentication",
    message: `${provider} rejected the key or login: ${truncateDetails(details)}. Check ${setting}.`,
  };
}

export function toRateLimitFault(
  { provider }: ProviderInfo,
  details: string,
  retry_after_ms: number | undefined,
): ProviderFault {
  const when = retry_after_ms === undefined ? "later" : `in ${Math.ceil(retry_after_ms / 1000)} s`;
  return {
    kind: "rate_limit",
    message: `${provider} accepts no more requests right now: ${truncateDetails(details)}. Try again ${when}.`,
    ...(retry_after_ms === undefined ? {} : { retry_after_ms }),
  };
}

/** Reads `retry-after-ms`, or else `retry-after`, which is a number of seconds or a date. */
function readRetryAfterMs(headers: Readonly<Record<string, string>>): number | undefined {
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

function truncateDetails(text: string): string {
  return text.length > maxDetailCharacters ? `${text.slice(0, maxDetailCharacters)}...` : text.replace(/\.$/, "");
}

function readField(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
