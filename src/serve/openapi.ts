import * as z from "zod";
import type { Contract } from "../wire/contract.ts";
import { contracts } from "../wire/contracts.ts";
import { problemSchema } from "../wire/schemas.ts";
import { fillPath } from "../wire/transport.ts";
import type { JsonSchema, OpenApiDocument, Operation } from "./openapi-document.ts";
import type { Route } from "./route.ts";
import { needsNoToken, type Rule } from "./rule.ts";

type Row = Pick<Route, "name" | "method" | "path" | "rule">;

/** Made from the table of routes, by zod itself: the schemas of OpenAPI 3.1 are JSON Schemas. */
export function openApiDocument(
  table: readonly Row[],
  { version, publicUrls }: { version: string; publicUrls: readonly string[] },
): OpenApiDocument {
  const schemas = createSchemas();
  const paths: OpenApiDocument["paths"] = {};
  for (const row of table)
    (paths[fillPath(row.path, (name) => `{${name}}`)] ??= {})[row.method] = operationOf(row, schemas);
  schemas.write(problemSchema, "output");
  return {
    openapi: "3.1.0",
    info: { title: "Drover", version, description: "Runs any agent, anywhere, on the record." },
    servers: [{ url: "/", description: "This coordinator" }, ...publicUrls.map((url) => ({ url }))],
    paths,
    components: { schemas: schemas.named, securitySchemes: { bearer: { type: "http", scheme: "bearer" } } },
  };
}

function operationOf({ name, path, rule }: Row, schemas: Schemas): Operation {
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
        schema: { type: "string", ...(match[2] === "*" ? { description: "Slashes may stand as they are." } : {}) },
      })),
      ...parametersOf("query", contract.query, schemas),
      ...parametersOf("header", contract.headers, schemas),
    ],
    ...bodyOf(contract, schemas),
    responses: { ...answersOf(contract, schemas), ...refusalsOf(contract, rule) },
  };
}

function bodyOf({ body, takesBytes }: Contract, schemas: Schemas): Pick<Operation, "requestBody"> {
  if (takesBytes)
    return {
      requestBody: { required: true, content: { "application/octet-stream": { schema: { format: "binary" } } } },
    };
  if (!body) return {};
  const required = !body.safeParse(undefined).success;
  return { requestBody: { required, content: { "application/json": { schema: schemas.write(body, "input") } } } };
}

function answersOf({ responses }: Contract, schemas: Schemas): Operation["responses"] {
  return Object.fromEntries(
    Object.entries(responses).map(([status, { description, schema, media = "application/json" }]) => {
      if (Number(status) >= 400) return [status, problemAnswer(description)];
      const content = schema && { content: { [media]: { schema: schemas.write(schema, "output") } } };
      return [status, { description, ...content }];
    }),
  );
}

/** Those that follow from the rule and the parts of the request; a contract names its own. */
function refusalsOf({ query, headers, body, takesBytes, responses }: Contract, rule: Rule): Operation["responses"] {
  const refusals: Record<number, string> = {
    ...(query || headers || body || takesBytes ? { 400: "The request does not fit its schema" } : {}),
    ...(needsNoToken(rule)
      ? {}
      : { 401: "No token, or one that is unknown or has ended", 403: "Not allowed with this token" }),
    ...("object" in rule ? { 404: `No such ${rule.object}, or it is not the caller's` } : {}),
  };
  return {
    ...Object.fromEntries(
      Object.entries(refusals)
        .filter(([status]) => !(status in responses))
        .map(([status, description]) => [status, problemAnswer(description)]),
    ),
    default: problemAnswer("Refused, or not possible now"),
  };
}

function problemAnswer(description: string): Operation["responses"][string] {
  return { description, content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } } };
}

function parametersOf(place: "query" | "header", schema: z.ZodObject | undefined, schemas: Schemas) {
  return Object.entries(schema?.shape ?? {}).map(([name, one]): Operation["parameters"][number] => {
    // what it is once it is parsed: in a query, everything begins as text
    const { default: preset, ...written } = schemas.write(one as z.ZodType, "output");
    return {
      name,
      in: place,
      required: !(one as z.ZodType).safeParse(undefined).success,
      schema: preset === undefined ? written : { ...written, default: preset },
      ...(written["type"] === "array" ? { style: "form", explode: false } : {}),
    };
  });
}

interface Schemas {
  /** Those with a name, for `components`. */
  named: Record<string, JsonSchema>;
  /** As JSON Schema, with references to the named ones inside it. */
  write(schema: z.ZodType, io: "input" | "output"): JsonSchema;
}

/** A schema whose input is not its output has two names: `Usage`, and `UsageInput` with what may be left out. */
function createSchemas(): Schemas {
  const named: Record<string, JsonSchema> = {};
  return {
    named,
    write(schema, io) {
      const { $schema: _dialect, ...written } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
      const { $defs = {}, ...rest } = forClients(written, io);
      const names = new Map(Object.keys($defs).map((name) => [name, name]));
      const found = Object.entries($defs).map(([name, one]) => [name, withReferences(one, names)] as const);
      for (const [name, one] of found)
        if (JSON.stringify(named[name] ?? one) !== JSON.stringify(one)) names.set(name, `${name}Input`);
      for (const [name, one] of Object.entries($defs)) named[names.get(name)!] = withReferences(one, names);
      return withReferences(rest, names);
    },
  };
}

/**
 * Answers may get fields later: a client is not to be told that there are no others. Defaults of a request are said in
 * words: generators take a field with a default for one that is always there.
 */
function forClients<T>(schema: T, io: "input" | "output"): T {
  const text = JSON.stringify(schema, (key, value: unknown) => {
    if (io === "output") return key === "additionalProperties" && value === false ? undefined : value;
    if (typeof value !== "object" || value === null || !("default" in value)) return value;
    const { default: preset, ...rest } = value;
    return { ...rest, description: `Default: ${JSON.stringify(preset)}` };
  });
  return JSON.parse(text) as T; // an object before, an object after, here and below
}

function withReferences(schema: object, names: ReadonlyMap<string, string>): JsonSchema {
  return JSON.parse(
    JSON.stringify(schema).replaceAll(
      /"#\/\$defs\/([^"]+)"/g,
      (_, name: string) => `"#/components/schemas/${names.get(name)}"`,
    ),
  ) as JsonSchema;
}

/** In words, for the page that people read. */
function describeAccess(rule: Rule): string {
  if ("signed" in rule) return "Open to requests with a valid signature.";
  if ("open" in rule) return "Open to everyone who reaches this address.";
  if ("enrolment" in rule) return "With an enrolment token.";
  const own = rule.object ? `; the ${rule.object} must be one's own, except for an admin` : "";
  const attempt = rule.attempt
    ? `; also with the token of a run's current attempt${rule.object ? ", for its own run" : ""}`
    : "";
  const everyones = rule.everyones ? "; a viewer with the subject *" : "";
  return `Role ${rule.roles.join(", ")}${own}${everyones}${attempt}.`;
}
