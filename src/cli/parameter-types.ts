import { pointerSteps } from "../model/json-pointer.ts";

const kinds = ["null", "boolean", "integer", "number", "string", "array", "object"] as const;
export type Kind = (typeof kinds)[number];

/** The types that a schema accepts, as far as they are needed to parse a command-line argument. */
export interface Types {
  /** null if the schema does not restrict the type. */
  kinds: ReadonlySet<Kind> | null;
  /** The values of an enum or const. null if any value of these kinds is accepted. */
  values: readonly unknown[] | null;
  items(): Types;
}

type Schema = Readonly<Record<string, unknown>>;

const anything: Types = { kinds: null, values: null, items: () => anything };
/** Limits the depth of references, which may be circular. */
const maxDepth = 16;

/** Follows local references, allOf, anyOf and oneOf. Everything else is left to the coordinator's validation. */
export function readTypes(schema: unknown, root: unknown, depth = 0): Types {
  if (!isSchema(schema) || depth > maxDepth) return anything;
  const inner = (each: unknown): Types => readTypes(each, root, depth + 1);
  const own: Types = { ...ownTypes(schema), items: () => inner(schema["items"]) };
  const unions = [schema["anyOf"], schema["oneOf"]].filter(Array.isArray).map((list) => either(list.map(inner)));
  return [...partsOf(schema, root).map(inner), ...unions].reduce(both, own);
}

/** The schema of one parameter, or undefined if the schema does not mention it. */
export function findProperty(schema: unknown, name: string, root = schema, depth = 0): unknown {
  if (!isSchema(schema) || depth > maxDepth) return undefined;
  const properties = schema["properties"];
  if (isSchema(properties) && Object.hasOwn(properties, name)) return properties[name];
  const choices = [schema["anyOf"], schema["oneOf"]].filter(Array.isArray).flat();
  for (const part of [...partsOf(schema, root), ...choices]) {
    const found = findProperty(part, name, root, depth + 1);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** Schemas that apply in addition to the keywords of this one. */
function partsOf(schema: Schema, root: unknown): unknown[] {
  const all = schema["allOf"];
  const reference = schema["$ref"];
  return [...(Array.isArray(all) ? all : []), ...(typeof reference === "string" ? [resolve(reference, root)] : [])];
}

function resolve(reference: string, root: unknown): unknown {
  if (!/^#(?:\/|$)/.test(reference)) return undefined;
  const steps = pointerSteps(decodeURIComponent(reference));
  return steps.reduce<unknown>((at, step) => (isSchema(at) ? at[step] : undefined), root);
}

function ownTypes(schema: Schema): Pick<Types, "kinds" | "values"> {
  const { type, enum: members } = schema;
  const values = "const" in schema ? [schema["const"]] : Array.isArray(members) ? members : null;
  const named = kinds.filter((kind) => (Array.isArray(type) ? type.includes(kind) : type === kind));
  return { kinds: named.length > 0 ? new Set(named) : null, values };
}

function both(one: Types, other: Types): Types {
  const { kinds: a } = one;
  const { kinds: b } = other;
  const common = [...(a ?? [])].filter((kind) => b?.has(kind) || (kind === "integer" && b?.has("number")));
  if (b?.has("integer") && a?.has("number")) common.push("integer");
  const items = one.items();
  return {
    kinds: a && b ? new Set(common) : (a ?? b),
    values: one.values ?? other.values,
    items: items.kinds || items.values ? one.items : other.items,
  };
}

function either(all: readonly Types[]): Types {
  const kindsOf = all.map((each) => each.kinds);
  const valuesOf = all.map((each) => each.values ?? (each.kinds?.size === 1 && each.kinds.has("null") ? [null] : null));
  const list = all.find((each) => each.kinds?.has("array"));
  return {
    kinds: kindsOf.includes(null) ? null : new Set(kindsOf.flatMap((each) => [...(each ?? [])])),
    values: valuesOf.includes(null) ? null : valuesOf.flatMap((each) => each ?? []),
    items: () => list?.items() ?? anything,
  };
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
