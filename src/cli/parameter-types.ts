import { splitPointer } from "../model/json-pointer.ts";

const kinds = ["null", "boolean", "integer", "number", "string", "array", "object"] as const;
export type Kind = (typeof kinds)[number];

/** What a schema accepts, as far as this is needed to parse a command-line argument. */
export interface Types {
  /** null if the schema does not restrict the type. */
  kinds: ReadonlySet<Kind> | null;
  /** The values of an enum or const. null if any value of these kinds is accepted. */
  values: readonly unknown[] | null;
  items(): Types;
}

type Schema = Readonly<Record<string, unknown>>;

const anyType: Types = { kinds: null, values: null, items: () => anyType };
/** Limits the depth of references, which may be circular. */
const maxDepth = 16;

/** Reads the types of a schema through local references, allOf, anyOf and oneOf. The coordinator validates the rest. */
export function readTypes(schema: unknown, root: unknown, depth = 0): Types {
  if (!isSchema(schema) || depth > maxDepth) return anyType;
  const readPart = (part: unknown): Types => readTypes(part, root, depth + 1);
  const keywordTypes: Types = { ...readOwnTypes(schema), items: () => readPart(schema["items"]) };
  const unions = [schema["anyOf"], schema["oneOf"]].filter(Array.isArray).map((list) => unite(list.map(readPart)));
  return [...listParts(schema, root).map(readPart), ...unions].reduce(intersect, keywordTypes);
}

/** Finds the schema of one parameter. Returns undefined if the schema does not mention the parameter. */
export function findProperty(schema: unknown, name: string, root = schema, depth = 0): unknown {
  if (!isSchema(schema) || depth > maxDepth) return undefined;
  const properties = schema["properties"];
  if (isSchema(properties) && Object.hasOwn(properties, name)) return properties[name];
  const choices = [schema["anyOf"], schema["oneOf"]].filter(Array.isArray).flat();
  for (const part of [...listParts(schema, root), ...choices]) {
    const property = findProperty(part, name, root, depth + 1);
    if (property !== undefined) return property;
  }
  return undefined;
}

/** Lists the names of all parameters that the schema mentions, required ones first. */
export function listProperties(schema: unknown): { name: string; isRequired: boolean }[] {
  const names = new Set<string>();
  const required = new Set<string>();
  const collect = (part: unknown, isAlternative: boolean, depth: number): void => {
    if (!isSchema(part) || depth > maxDepth) return;
    if (isSchema(part["properties"])) for (const name of Object.keys(part["properties"])) names.add(name);
    if (Array.isArray(part["required"]) && !isAlternative)
      for (const name of part["required"]) required.add(String(name));
    for (const inner of listParts(part, schema)) collect(inner, isAlternative, depth + 1);
    for (const inner of [part["anyOf"], part["oneOf"]].filter(Array.isArray).flat()) collect(inner, true, depth + 1);
  };
  collect(schema, false, 0);
  const properties = [...names].map((name) => ({ name, isRequired: required.has(name) }));
  return [...properties.filter(({ isRequired }) => isRequired), ...properties.filter(({ isRequired }) => !isRequired)];
}

/** Lists the schemas that apply in addition to the keywords of this one. */
function listParts(schema: Schema, root: unknown): unknown[] {
  const allOf = schema["allOf"];
  const reference = schema["$ref"];
  return [...(Array.isArray(allOf) ? allOf : []), ...(typeof reference === "string" ? [resolve(reference, root)] : [])];
}

function resolve(reference: string, root: unknown): unknown {
  if (!/^#(?:\/|$)/.test(reference)) return undefined;
  const steps = splitPointer(decodeURIComponent(reference));
  return steps.reduce<unknown>((value, step) => (isSchema(value) ? value[step] : undefined), root);
}

function readOwnTypes(schema: Schema): Pick<Types, "kinds" | "values"> {
  const { type, enum: members } = schema;
  const values = "const" in schema ? [schema["const"]] : Array.isArray(members) ? members : null;
  const matching = kinds.filter((kind) => (Array.isArray(type) ? type.includes(kind) : type === kind));
  return { kinds: matching.length > 0 ? new Set(matching) : null, values };
}

function intersect(first: Types, second: Types): Types {
  const { kinds: a } = first;
  const { kinds: b } = second;
  const common = [...(a ?? [])].filter((kind) => b?.has(kind) || (kind === "integer" && b?.has("number")));
  if (b?.has("integer") && a?.has("number")) common.push("integer");
  const items = first.items();
  return {
    kinds: a && b ? new Set(common) : (a ?? b),
    values: first.values ?? second.values,
    items: items.kinds || items.values ? first.items : second.items,
  };
}

function unite(all: readonly Types[]): Types {
  const kindLists = all.map((types) => types.kinds);
  const valueLists = all.map(
    (types) => types.values ?? (types.kinds?.size === 1 && types.kinds.has("null") ? [null] : null),
  );
  const list = all.find((types) => types.kinds?.has("array"));
  return {
    kinds: kindLists.includes(null) ? null : new Set(kindLists.flatMap((kindList) => [...(kindList ?? [])])),
    values: valueLists.includes(null) ? null : valueLists.flatMap((valueList) => valueList ?? []),
    items: () => list?.items() ?? anyType,
  };
}

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
