import { type ApiClient, createApiClient } from "./api-client.ts";
import { httpTransport, type Target } from "./http-transport.ts";

export type { ApiClient, FlatAgent, NewToken, Submission } from "./api-client.ts";

/** A client of the coordinator at this address. */
export function createClient(target: Target): ApiClient {
  return createApiClient(httpTransport(target));
}
