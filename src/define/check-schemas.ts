import type { Agent } from "../model/agent.ts";
import type { Requester } from "../model/requester.ts";
import type { DefinitionFault } from "../model/definition-fault.ts";
import { type ParsedAgent, createSchemaFault } from "./agent-file.ts";
import type { SchemaChecker } from "./json-schema/checker.ts";

/** Validates the agent's schemas, so that a bad schema is reported now and not by the first run. */
export async function checkSchemas(
  parsed: ParsedAgent,
  schemas: Pick<SchemaChecker, "checkSchema">,
  requester?: Requester,
): Promise<
  | { ok: true; agent: Agent }
  | {
      ok: false;
      faults: DefinitionFault[];
      /** Set if the checker was too busy to decide. */ retryAfterSeconds?: number;
    }
> {
  const checked = await Promise.all(
    parsed.schemas.map(async ([key, schema]) => ({ key, schema, ...(await schemas.checkSchema(schema, requester)) })),
  );
  const invalid = checked.flatMap(({ key, schema, faults }) =>
    keepFirstPerPath(faults).map((fault) => createSchemaFault(key, fault, parsed.origin, schema)),
  );
  const faults = [...(parsed.ok ? [] : parsed.faults), ...invalid];
  if (parsed.ok && faults.length === 0) return parsed;
  const busy = checked.find(({ retryAfterSeconds }) => retryAfterSeconds !== undefined);
  return { ok: false, faults, ...(busy?.retryAfterSeconds ? { retryAfterSeconds: busy.retryAfterSeconds } : {}) };
}

/** A wrong `type` violates three rules of the meta-schema. Only the first of them is helpful. */
function keepFirstPerPath<T extends { path: string }>(faults: readonly T[]): T[] {
  return faults.filter(({ path }, index) => faults.findIndex((fault) => fault.path === path) === index);
}
