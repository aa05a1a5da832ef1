import * as z from "zod";
import type { Contract } from "../wire/contract.ts";
import { contracts } from "../wire/contracts.ts";
import { problemSchema } from "../wire/schemas.ts";
import { fillPath } from "../wire/transport.ts";
import type { JsonSchema, OpenApiDocument, Operation } from "./openapi-document.ts";
import type { Route } from "./route.ts";
import { needsNoToken, type Rule } from "./rule.ts";

type DocumentedRoute = Pick<Route, "name" | "method" | "path" | "rule">;

/** Generates the document from the table of routes. OpenAPI 3.1 schemas are JSON Schemas, so zod converts them itself. */
export function buildOpenApiDocument(
  routes: readonly DocumentedRoute[],
  { version, publicUrls }: { version: string; publicUrls: readonly string[] },
): OpenApiDocument {
  const schemas = createSchemas();
  const paths: OpenApiDocument["paths"] = {};
  for (const route of routes)
    (paths[fillPath(route.path, (name) => `{${name}}`)] ??= {})[route.method] = buildOperation(route, schemas);
  schemas.toJsonSchema(problemSchema, "output");
  return {
    openapi: "3.1.0",
    info: { title: "Drover", version, description: "Runs any agent, anywhere, on the record." },
    servers: [{ url: "/", description: "This coordinator" }, ...publicUrls.map((url) => ({ url }))],
    paths,
    components: { schemas: schemas.byName, securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
  };
}

function buildOperation({ name, path, rule }: DocumentedRoute, schemas: Schemas): Operation {
  const contract: Contract = contracts[name];
  return {
    operationId: contract.id,
    summary: contract.summary,
    description: describeAccess(rule),
    ...(needsNoToken(rule) ? {} : { security: [{ bearer: [] }] }),
    parameters: [
      ...[...path.matchAll(/\{(\w+)(\*?)\}/g)].map((match) => ({
        name: match[1]!,
        in: "path" as const,
        required: true,
        schema: { type: "string", ...(match[2] === "*" ? { description: "May contain unencoded slashes." } : {}) },
      })),
      ...buildParameters("query", contract.query, schemas),
      ...buildParameters("header", contract.headers, schemas),
    ],
    ...buildBody(contract, schemas),
    responses: { ...buildResponses(contract, schemas), ...buildRefusals(contract, rule) },
  };
}

function buildBody({ body, takesBytes }: Contract, schemas: Schemas): Pick<Operation, "requestBody"> {
  if (takesBytes)
    return {
      requestBody: { required: true, content: { "application/octet-stream": { schema: { format: "binary" } } } },
    };
  if (!body) return {};
  const required = !body.safeParse(undefined).success;
  return {
    requestBody: { required, content: { "application/json": { schema: schemas.toJsonSchema(body, "input") } } },
  };
}

function buildResponses({ responses }: Contract, schemas: Schemas): Operation["responses"] {
  return Object.fromEntries(
    Object.entries(responses).map(([status, { description, schema, media = "application/json" }]) => {
      if (Number(status) >= 400) return [status, toProblemResponse(description)];
      const content = schema && { content: { [media]: { schema: schemas.toJsonSchema(schema, "output") } } };
      return [status, { description, ...content }];
    }),
  );
}

/** Refusals that follow from the rule and from the parts of the request. The contract lists its own. */
function buildRefusals({ query, headers, body, takesBytes, responses }: Contract, rule: Rule): Operation["responses"] {
  const refusals: Record<number, string> = {
    ...(query || headers || body || takesBytes ? { 400: "The request does not match its schema" } : {}),
    ...(needsNoToken(rule)
      ? {}
      : { 401: "The token is missing, unknown, expired or revoked", 403: "The token does not allow this" }),
    ...("object" in rule ? { 404: `No such ${rule.object}, or the caller does not own it` } : {}),
  };
  return {
    ...Object.fromEntries(
      Object.entries(refusals)
        .filter(([status]) => !(status in responses))
        .map(([status, description]) => [status, toProblemResponse(description)]),
    ),
    default: toProblemResponse("Refused, or temporarily unavailable"),
  };
}

function toProblemResponse(description: string): Operation["responses"][string] {
  return { description, content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } } };
}

function buildParameters(location: "query" | "header", schema: z.ZodObject | undefined, schemas: Schemas) {
  return Object.entries(schema?.shape ?? {}).map(([name, field]): Operation["parameters"][number] => {
    // Describe the parsed type, because in a query string every value is text.
    const { default: defaultValue, ...jsonSchema } = schemas.toJsonSchema(field as z.ZodType, "output");
    return {
      name,
      in: location,
      required: !(field as z.ZodType).safeParse(undefined).success,
      schema: defaultValue === undefined ? jsonSchema : { ...jsonSchema, default: defaultValue },
      ...(jsonSchema["type"] === "array" ? { style: "form", explode: false } : {}),
    };
  });
}

interface Schemas {
  /** The schemas under `components`, by name. */
  byName: Record<string, JsonSchema>;
  /** Converts a schema to JSON Schema. The named schemas in it become references. */
  toJsonSchema(schema: z.ZodType, io: "input" | "output"): JsonSchema;
}

/** A schema whose input differs from its output gets two names, such as `Usage` and `UsageInput`. */
function createSchemas(): Schemas {
  const byName: Record<string, JsonSchema> = {};
  return {
    byName,
    toJsonSchema(schema, io) {
      const { $schema: _dialect, ...jsonSchema } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
      const { $defs = {}, ...rest } = adaptForClients(jsonSchema, io);
      const names = new Map(Object.keys($defs).map((name) => [name, name]));
      const definitions = Object.entries($defs).map(
        ([name, definition]) => [name, replaceReferences(definition, names)] as const,
      );
      for (const [name, definition] of definitions)
        if (JSON.stringify(byName[name] ?? definition) !== JSON.stringify(definition)) names.set(name, `${name}Input`);
      for (const [name, definition] of Object.entries($defs))
        byName[names.get(name)!] = replaceReferences(definition, names);
      return replaceReferences(rest, names);
    },
  };
}

/**
 * Responses may gain fields later, so the document must not rule out additional properties. Defaults of requests become
 * descriptions, because client generators treat a field with a default as required.
 */
function adaptForClients<T>(schema: T, io: "input" | "output"): T {
  const text = JSON.stringify(schema, (key, value: unknown) => {
    if (io === "output") return key === "additionalProperties" && value === false ? undefined : value;
    if (typeof value !== "object" || value === null || !("default" in value)) return value;
    const { default: defaultValue, ...rest } = value;
    return { ...rest, description: `Default: ${JSON.stringify(defaultValue)}` };
  });
  // Parsing an object's JSON gives an object. The same applies in replaceReferences.
  return JSON.parse(text) as T;
}

function replaceReferences(schema: object, names: ReadonlyMap<string, string>): JsonSchema {
  return JSON.parse(
    JSON.stringify(schema).replaceAll(
      /"#\/\$defs\/([^"]+)"/g,
      (_, name: string) => `"#/components/schemas/${names.get(name)}"`,
    ),
  ) as JsonSchema;
}

/** Describes who may call a route. Shown in the reference at /docs. */
function describeAccess(rule: Rule): string {
  if ("signed" in rule) return "No token; the request must have a valid signature.";
  if ("open" in rule) return "No token needed.";
  if ("enrolment" in rule) return "Needs an enrolment token.";
  const objectRule = rule.object ? `; only an admin may use another owner's ${rule.object}` : "";
  const attempt = rule.attempt
    ? `; also allowed with the token of a run's current attempt${rule.object ? ", for its own run" : ""}`
    : "";
  const allOwners = rule.allOwners ? "; a viewer needs the subject *" : "";
  return `Needs the role ${rule.roles.join(" or ")}${objectRule}${allOwners}${attempt}.`;
}
