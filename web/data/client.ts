import { HostError, RequestError } from "../../src/model/errors.ts";
import { createApiClient } from "../../src/wire/api-client.ts";
import { createFetchTransport } from "./fetch-transport.ts";

/** Authenticated by the session cookie, so it needs no token. */
export const api = createApiClient(createFetchTransport(location.origin));

export type Api = typeof api;

/** Whether the session has expired or was revoked, so that the user must sign in again. */
export function isSignedOut(error: unknown): boolean {
  return error instanceof RequestError && (error.code === "DROVER-API-009" || error.code === "DROVER-API-010");
}

export interface ErrorText {
  code: string | null;
  message: string;
  next: string | null;
}

export function describeError(error: unknown): ErrorText {
  if (error instanceof RequestError || error instanceof HostError)
    return { code: error.code, message: error.message, next: error.next ?? null };
  return { code: null, message: error instanceof Error ? error.message : String(error), next: null };
}
