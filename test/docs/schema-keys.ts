import * as z from "zod";

/** One key as a reference page documents it. Nested keys are joined with dots, and `[]` stands for the items of a list. */
export interface DocumentedKey {
  key: string;
  shape: string;
  /** `required`, a value in JSON, or nothing. */
  default: string;
}

interface JsonSchema {
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  anyOf?: JsonSchema[];
  items?: JsonSchema;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  default?: unknown;
  minimum?: number;
  exclusiveMinimum?: number;
  maximum?: number;
}

/** Lists the keys of a schema in their order, with the shape that a reference page must give for each. */
export function listSchemaKeys(schema: z.ZodType): DocumentedKey[] {
  const json = z.toJSONSchema(schema, { io: "input", unrepresentable: "any", reused: "inline" }) as JsonSchema;
  return listKeys(json, "");
}

function listKeys(schema: JsonSchema, prefix: string): DocumentedKey[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, value]) => {
    const key = `${prefix}${name}`;
    const isRequired = schema.required?.includes(name) === true;
    const inner = alternatives(value).flatMap((alternative) =>
      alternative.properties
        ? listKeys(alternative, `${key}.`)
        : alternative.items?.properties
          ? listKeys(alternative.items, `${key}[].`)
          : [],
    );
    const shape = describeShape(value);
    // An object that only groups keys has no shape of its own.
    const own = { key, shape, default: isRequired ? "required" : shape === "map" ? "" : showDefault(value.default) };
    return [own, ...inner];
  });
}

const alternatives = (schema: JsonSchema): JsonSchema[] => schema.anyOf ?? [schema];

function describeShape(schema: JsonSchema): string {
  return joinWithOr([...new Set(listShapes(schema))]);
}

function listShapes(schema: JsonSchema): string[] {
  if (schema.anyOf) return schema.anyOf.flatMap(listShapes);
  if (schema.enum) return schema.enum.map((value) => `\`${String(value)}\``);
  if (schema.const !== undefined) return [`\`${String(schema.const)}\``];
  if (Array.isArray(schema.type)) return schema.type.flatMap((type) => listShapes({ ...schema, type }));
  switch (schema.type) {
    case "boolean":
      return ["`true`", "`false`"];
    case "null":
      return ["`null`"];
    case "integer":
    case "number":
      return [describeNumber(schema)];
    case "array":
      return [`list of ${toPlural(describeShape(schema.items ?? {}))}`];
    case "object":
      return ["map"];
    case "string":
      return ["string"];
    default:
      return ["any value"];
  }
}

function describeNumber({ type, minimum, exclusiveMinimum, maximum }: JsonSchema): string {
  const describeBounds = maximum !== undefined && maximum < Number.MAX_SAFE_INTEGER;
  const least = minimum ?? (type === "integer" && exclusiveMinimum !== undefined ? exclusiveMinimum + 1 : undefined);
  if (least !== undefined && least > Number.MIN_SAFE_INTEGER)
    return describeBounds ? `${String(type)} from ${least} to ${maximum}` : `${String(type)} of at least ${least}`;
  return exclusiveMinimum === undefined ? String(type) : `${String(type)} above ${exclusiveMinimum}`;
}

const toPlural = (shape: string): string =>
  ["string", "integer", "number", "map"].includes(shape) ? `${shape}s` : shape;

function joinWithOr(shapes: readonly string[]): string {
  return shapes.length < 2 ? shapes.join("") : `${shapes.slice(0, -1).join(", ")} or ${shapes.at(-1)}`;
}

const showDefault = (value: unknown): string =>
  value === undefined ? "" : `\`${typeof value === "string" ? value : JSON.stringify(value)}\``;
