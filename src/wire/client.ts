import { type ApiClient, createApiClient } from "./api-client.ts";
import { createHttpTransport, type Target } from "./http-transport.ts";

export type { ApiClient, FlatAgent, NewToken, Submission } from "./api-client.ts";

/** Creates a client that talks to a coordinator over HTTP or its Unix socket. */
export function createClient(target: Target): ApiClient {
  return createApiClient(createHttpTransport(target));
}
