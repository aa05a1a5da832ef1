import type { ProviderFault } from "../../model/provider.ts";
import { toAuthenticationFault, toRateLimitFault, toRejectedRequestFault, toUnreachableFault } from "../faults.ts";

export const providerInfo = { provider: "claude-code", variable: null };

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
  if (loginKinds.has(kind ?? "") || status === 401 || status === 403) return toAuthenticationFault(providerInfo, text);
  if (kind === "rate_limit" || kind === "overloaded" || status === 429 || status === 529)
    return toRateLimitFault(providerInfo, text, retryAfterMs);
  if (kind === "server_error" || (status ?? 0) >= 500 || /connect|socket|network|timed? ?out/i.test(text))
    return toUnreachableFault(providerInfo, text);
  return toRejectedRequestFault(providerInfo, text, text);
}

/** The SDK's program exited or could not be started. */
export function toProgramFault(error: unknown): ProviderFault {
  return toUnreachableFault(providerInfo, error instanceof Error ? error.message : String(error));
}
