import { createApi } from "../serve/api.ts";
import type { RecordDeps } from "../serve/deps.ts";
import { createInProcessTransport } from "../serve/in-process-transport.ts";
import { eventRoutes } from "../serve/routes/events.ts";
import { fileRoutes } from "../serve/routes/files.ts";
import { questionRoutes } from "../serve/routes/questions.ts";
import { recordRoutes } from "../serve/routes/record.ts";
import { sessionRoutes } from "../serve/routes/sessions.ts";
import { trustTypes } from "../serve/trust-types.ts";
import { createOwnerLookup } from "../show/owner-lookup.ts";
import { type ApiClient, createApiClient } from "../wire/api-client.ts";

/**
 * Creates a client of a record that this process has opened. Calls that need a coordinator are rejected. The compiler checks
 * all calls against the contracts, so the schemas are not loaded to check them again.
 */
export function createRecordClient(store: RecordDeps["store"]): ApiClient {
  const routes = [...recordRoutes, ...questionRoutes, ...eventRoutes, ...fileRoutes, ...sessionRoutes];
  const deps = { store, owners: createOwnerLookup(store.read), checkInput };
  return createApiClient(createInProcessTransport(createApi(deps, routes, trustTypes), null));
}

/** Checks an edited tool input. Loads the schema checker only then. */
async function checkInput(schema: Record<string, unknown>, input: unknown) {
  const { openSchemaChecker } = await import("../define/json-schema/checker.ts");
  const { checkToolInput } = await import("../submit/parameters.ts");
  const schemas = openSchemaChecker();
  try {
    return await checkToolInput(schema, input, schemas);
  } finally {
    await schemas.stop();
  }
}
