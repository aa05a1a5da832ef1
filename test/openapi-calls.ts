import { type Dice, createFromSchema, createHostileValue, spoil } from "./fuzz.ts";
import type { RawCall } from "./http-call.ts";

/** The part of an OpenAPI document from which requests are generated. */
export interface ApiDocument {
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown> };
}

interface Operation {
  parameters?: { name: string; in: string; schema?: unknown }[];
  requestBody?: { content: Record<string, { schema?: unknown }> };
}

/** Generates requests for every operation, some valid, most wrong in one or two places. `skip` lists excluded paths. */
export function createOpenApiCalls(
  document: ApiDocument,
  headers: Record<string, string>,
  random: Dice,
  skip: readonly string[] = [],
) {
  const { schemas } = document.components;
  const operations = Object.entries(document.paths)
    .filter(([path]) => !skip.includes(path))
    .flatMap(([path, methods]) => Object.entries(methods).map(([method, operation]) => ({ path, method, operation })));
  return { operations: operations.length, next };

  function next(): RawCall {
    const { path, method, operation } = random.pick(operations);
    const filled = path.replaceAll(/\{\w+\}/g, () =>
      encodeURIComponent(String(random.chance(0.5) ? "echo" : hostileText())),
    );
    const query = (operation.parameters ?? [])
      .filter((parameter) => parameter.in === "query" && random.chance(0.4))
      .map((parameter): [string, string] => [
        parameter.name,
        String(random.chance(0.6) ? createFromSchema(parameter.schema, schemas, random) : hostileText()),
      ]);
    if (random.chance(0.05)) query.push([hostileText(), hostileText()]);
    const schema = operation.requestBody?.content["application/json"]?.schema;
    const body =
      schema === undefined
        ? undefined
        : spoil(createFromSchema(schema, schemas, random), random.pick([0, 0, 1, 2]), random);
    const search = new URLSearchParams(query).toString();
    return {
      method: method.toUpperCase(),
      path: search === "" ? filled : `${filled}?${search}`,
      headers: random.chance(0.1)
        ? { ...headers, accept: "text/event-stream", "last-event-id": hostileHeader() }
        : headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    };
  }

  function hostileText(): string {
    return String(createHostileValue(random)).toWellFormed().slice(0, 2000);
  }
  function hostileHeader(): string {
    return hostileText().replaceAll(/[^\x20-\x7e]/g, "?");
  }
}
