import type { ProviderFault } from "../../model/provider.ts";
import { authentication, rateLimit, rejectedRequest, unreachable } from "../faults.ts";

export const setup = { provider: "claude-code", variable: null };

export interface SdkFailure {
  /** The SDK's own error code. */
  kind: string | undefined;
  status: number | null | undefined;
  text: string;
  retryAfterMs?: number | undefined;
}

const loginKinds = new Set([
  "authentication_failed",
  "oauth_org_not_allowed",
  "account_on_hold",
  "verification_required",
  "billing_error",
  "cloud_credential_error",
]);

/** Converts an error from the SDK. */
export function toProviderFault({ kind, status, text, retryAfterMs }: SdkFailure): ProviderFault {
  if (loginKinds.has(kind ?? "") || status === 401 || status === 403) return authentication(setup, text);
  if (kind === "rate_limit" || kind === "overloaded" || status === 429 || status === 529)
    return rateLimit(setup, text, retryAfterMs);
  if (kind === "server_error" || (status ?? 0) >= 500 || /connect|socket|network|timed? ?out/i.test(text))
    return unreachable(setup, text);
  return rejectedRequest(setup, text, text);
}

/** The SDK's program exited or could not be started. */
export function programFault(error: unknown): ProviderFault {
  return unreachable(setup, error instanceof Error ? error.message : String(error));
}
