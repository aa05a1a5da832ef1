import { type Client, clientOver } from "./api-client.ts";
import { httpTransport, type Target } from "./send.ts";

export type { Client, FlatAgent, NewToken, Submission } from "./api-client.ts";

/** A client of the coordinator at this address. */
export function createClient(target: Target): Client {
  return clientOver(httpTransport(target));
}
