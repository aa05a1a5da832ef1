import { z } from "zod";
import { problemSchema } from "../wire/schemas.ts";
import type { JsonSchema, OpenApiDocument, Operation } from "./openapi-document.ts";
import { type Route, withParameters } from "./route.ts";
import type { Rule } from "./rule.ts";

/** Made from the table of routes, by zod itself: the schemas of OpenAPI 3.1 are JSON Schemas. */
export function openApiDocument(table: readonly Route[], version: string): OpenApiDocument {
  const paths: OpenApiDocument["paths"] = {};
  for (const row of table) {
    const path = withParameters(row.path, (name) => `{${name}}`);
    (paths[path] ??= {})[row.method] = operationOf(row);
  }
  return {
    openapi: "3.1.0",
    info: { title: "Drover", version, description: "Runs any agent, anywhere, on the record." },
    paths,
    components: {
      schemas: { Problem: toJsonSchema(problemSchema, "output") },
      securitySchemes: { bearer: { type: "http", scheme: "bearer" } },
    },
  };
}

function operationOf(row: Route): Operation {
  const answers = Object.entries(row.answers).map(([status, { description, schema, media = "application/json" }]) => [
    status,
    { description, ...(schema ? { content: { [media]: { schema: toJsonSchema(schema, "output") } } } : {}) },
  ]);
  return {
    summary: row.summary,
    description: whoMay(row.rule),
    ...("open" in row.rule ? {} : { security: [{ bearer: [] }] }),
    parameters: [
      ...[...row.path.matchAll(/\{(\w+)(\*?)\}/g)].map((match) => ({
        name: match[1]!,
        in: "path" as const,
        required: true,
        schema: { type: "string", ...(match[2] === "*" ? { description: "Slashes may stand as they are." } : {}) },
      })),
      ...parametersOf("query", row.query),
      ...parametersOf("header", row.headers),
    ],
    ...(row.body
      ? {
          requestBody: { required: true, content: { "application/json": { schema: toJsonSchema(row.body, "input") } } },
        }
      : {}),
    ...(row.raw
      ? { requestBody: { required: true, content: { "application/octet-stream": { schema: { format: "binary" } } } } }
      : {}),
    responses: {
      ...Object.fromEntries(answers),
      default: {
        description: "Refused",
        content: { "application/problem+json": { schema: { $ref: "#/components/schemas/Problem" } } },
      },
    },
  };
}

function parametersOf(place: "query" | "header", schema: z.ZodType | undefined): Operation["parameters"] {
  if (schema === undefined) return [];
  const { properties = {}, required = [] } = toJsonSchema(schema, "input") as {
    properties?: Record<string, JsonSchema>;
    required?: string[];
  }; // every query is an object
  return Object.entries(properties).map(([name, one]) => ({
    name,
    in: place,
    required: required.includes(name),
    schema: one,
  }));
}

function toJsonSchema(schema: z.ZodType, io: "input" | "output"): JsonSchema {
  const { $schema: _dialect, ...rest } = z.toJSONSchema(schema, { io, unrepresentable: "any" });
  return rest;
}

/** In words, for the page that people read. */
function whoMay(rule: Rule): string {
  if ("open" in rule) return "Open to everyone who reaches this address.";
  if ("enrolment" in rule) return "With an enrolment token.";
  const own = rule.object ? `; the ${rule.object} must be one's own, except for an admin` : "";
  const attempt = rule.attempt
    ? `; also with the token of a run's current attempt${rule.object ? ", for its own run" : ""}`
    : "";
  const everyones = rule.everyones ? "; a viewer with the subject *" : "";
  return `Role ${rule.roles.join(", ")}${own}${everyones}${attempt}.`;
}
