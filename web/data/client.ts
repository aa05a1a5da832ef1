import { HostError, RequestError } from "../../src/model/errors.ts";
import { createApiClient } from "../../src/wire/api-client.ts";
import { fetchTransport } from "./fetch-transport.ts";

/** Signed in by the cookie, so without a token of its own. */
export const api = createApiClient(fetchTransport(location.origin));

export type Api = typeof api;

/** Whether the session has ended: signing in again is the only way on. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof RequestError && (error.code === "DROVER-API-009" || error.code === "DROVER-API-010");
}

export interface Shown {
  code: string | null;
  message: string;
  next: string | null;
}

export function describeError(error: unknown): Shown {
  if (error instanceof RequestError || error instanceof HostError)
    return { code: error.code, message: error.message, next: error.next ?? null };
  return { code: null, message: error instanceof Error ? error.message : String(error), next: null };
}
