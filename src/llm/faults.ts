import { APICallError, LoadAPIKeyError } from "@ai-sdk/provider";
import type { ProviderFault } from "../model/provider.ts";

/** How a provider is set up, for use in messages. */
export interface Setup {
  provider: string;
  /** The variable that holds its key; null if it needs none. */
  variable: string | null;
}

const maxVendorText = 500;

export const cancelled: ProviderFault = { kind: "network", message: "The request was cancelled." };

/** Converts an error of a call to a vendor's service. The order of the checks matters: see the comments. */
export function faultOf(error: unknown, setup: Setup, signal: AbortSignal): ProviderFault {
  // an abort looks like a failed call with status 200
  if (signal.aborted) return cancelled;
  if (LoadAPIKeyError.isInstance(error)) return authentication(setup, "no key is set");
  if (APICallError.isInstance(error)) return faultOfCall(error, setup);
  const type = fieldOf(error, "type");
  if (type === "overloaded_error" || type === "rate_limit_error" || [429, 503].includes(Number(fieldOf(error, "code"))))
    return rateLimit(setup, textOf(error), undefined);
  if (/too many requests|throttl/i.test(textOf(error))) return rateLimit(setup, textOf(error), undefined);
  // no connection, or one that broke: these are errors of fetch itself
  if (/^(?:terminated|fetch failed)$/.test(textOf(error))) return unreachable(setup, textOf(error));
  if (type === "authentication_error" || type === "permission_error") return authentication(setup, textOf(error));
  if (/AWS SigV4|credentials/i.test(textOf(error))) return authentication(setup, textOf(error));
  return unusableAnswer(setup, textOf(error));
}

export function unusableAnswer({ provider }: Setup, what: string): ProviderFault {
  return {
    kind: "invalid_response",
    message: `The answer of ${provider} cannot be used: ${shortened(what)}. Try again; if it happens every time, check the model's name and the base URL.`,
  };
}

function faultOfCall(error: APICallError, setup: Setup): ProviderFault {
  const { statusCode: status, responseHeaders: headers = {} } = error;
  if (status === 401 || status === 403) return authentication(setup, textOf(error));
  if (status === 429 || status === 529) return rateLimit(setup, textOf(error), retryAfterMs(headers));
  // a retryable error with status 200: the connection broke in the middle of the answer
  const cut = status === 200 && error.isRetryable;
  if (status === undefined || status >= 500 || status === 408 || cut)
    return unreachable(setup, `${status ?? "no answer"}: ${textOf(error)}`);
  return refusedRequest(setup, `${status}: ${textOf(error)}`, `${error.message} ${error.responseBody ?? ""}`);
}

export function unreachable({ provider }: Setup, what: string): ProviderFault {
  return {
    kind: "network",
    message: `${provider} cannot be reached or has an internal error (${shortened(what)}). Check the network and the base URL, or try again later.`,
  };
}

/** The service rejects this request, whoever sends it. `details` is everything it reported about that. */
export function refusedRequest(setup: Setup, what: string, details: string): ProviderFault {
  const fault = unusableAnswer(setup, what);
  const tooLong = /too long|context length|context_length|maximum context/i.test(details);
  return tooLong ? { ...fault, too_long: true } : fault;
}

export function authentication({ provider, variable }: Setup, what: string): ProviderFault {
  const where = variable === null ? "its login" : `${variable} where the runner starts`;
  return {
    kind: "authentication",
    message: `${provider} refused the key or login: ${shortened(what)}. Check ${where}.`,
  };
}

export function rateLimit({ provider }: Setup, what: string, retry_after_ms: number | undefined): ProviderFault {
  const when = retry_after_ms === undefined ? "later" : `in ${Math.ceil(retry_after_ms / 1000)} s`;
  return {
    kind: "rate_limit",
    message: `${provider} accepts no more requests right now: ${shortened(what)}. Try again ${when}.`,
    ...(retry_after_ms === undefined ? {} : { retry_after_ms }),
  };
}

/** Reads milliseconds first, then seconds or a date. */
function retryAfterMs(headers: Readonly<Record<string, string>>): number | undefined {
  const ms = Number(headers["retry-after-ms"] ?? Number.NaN);
  if (Number.isFinite(ms)) return Math.max(0, ms);
  const after = headers["retry-after"];
  if (after === undefined) return undefined;
  const wait = Number.isFinite(Number(after)) ? Number(after) * 1000 : Date.parse(after) - Date.now();
  return Number.isFinite(wait) ? Math.max(0, wait) : undefined;
}

function textOf(error: unknown): string {
  const message = fieldOf(error, "message");
  return typeof message === "string" && message !== "" ? message : "no message";
}

function shortened(text: string): string {
  return text.length > maxVendorText ? `${text.slice(0, maxVendorText)}...` : text.replace(/\.$/, "");
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}
