import { pointerSteps } from "../model/json-pointer.ts";

/** Schemas that may apply to one part of a value. If it is unclear whether one applies, it is included. */
type ApplicableSchemas = readonly object[];

export interface SchemaSecrets {
  /** Do these schemas mark the value as secret? */
  isSecret(schemas: ApplicableSchemas): boolean;
  root: ApplicableSchemas;
  below(schemas: ApplicableSchemas, key: string | number): ApplicableSchemas;
}

/** The most steps for a whole value. After that everything counts as secret, which bounds the cost of a hostile schema. */
const maxSteps = 10_000;

const anyMark = /"writeOnly":true|"format":"password"/;

const inPlace = ["allOf", "anyOf", "oneOf"] as const;
const conditional = ["if", "then", "else"] as const;
const ofAnyItem = ["contains", "additionalItems", "unevaluatedItems"] as const;
const ofAnyProperty = ["additionalProperties", "unevaluatedProperties"] as const;

/** Finds which parameters a JSON Schema marks as secret with `"format": "password"` or `"writeOnly": true`; null if none. */
export function findSchemaSecrets(schema: object | undefined): SchemaSecrets | null {
  if (schema === undefined || !anyMark.test(JSON.stringify(schema))) return null;
  const anchors = anchorsIn(schema);
  let steps = 0;
  const expand = (schemas: Iterable<unknown>): object[] => {
    const found = new Set<object>();
    const pending = [...schemas];
    while (pending.length > 0 && steps <= maxSteps) {
      const each = pending.pop();
      if (!isObject(each) || found.has(each)) continue;
      steps += 1;
      found.add(each);
      for (const key of inPlace) pending.push(...listOf(get(each, key)));
      for (const key of conditional) pending.push(get(each, key));
      pending.push(...valuesOf(get(each, "dependentSchemas")), ...valuesOf(get(each, "dependencies")));
      for (const key of ["$ref", "$dynamicRef", "$recursiveRef"]) {
        const ref = get(each, key);
        if (typeof ref === "string") pending.push(resolve(schema, anchors, ref));
      }
    }
    return [...found];
  };
  const known = new Map<ApplicableSchemas, Map<string | number, ApplicableSchemas>>();
  return {
    root: expand([schema]),
    isSecret: (schemas) =>
      steps > maxSteps || schemas.some((each) => get(each, "writeOnly") === true || get(each, "format") === "password"),
    below(schemas, key) {
      // all items of a list share their schemas, unless the schema distinguishes them by index
      const index = typeof key === "number" && !schemas.some(distinguishesItems) ? 0 : key;
      const children = known.get(schemas) ?? new Map<string | number, ApplicableSchemas>();
      known.set(schemas, children);
      const found = children.get(index) ?? expand(schemas.flatMap((each) => childrenOf(each, index)));
      children.set(index, found);
      return found;
    },
  };
}

function distinguishesItems(schema: object): boolean {
  return Array.isArray(get(schema, "items")) || get(schema, "prefixItems") !== undefined;
}

function childrenOf(schema: object, key: string | number): unknown[] {
  if (typeof key === "number") {
    const items = get(schema, "items");
    const some = Array.isArray(items) ? [items[key]] : [items];
    return [...some, listOf(get(schema, "prefixItems"))[key], ...ofAnyItem.map((name) => get(schema, name))];
  }
  const properties = get(schema, "properties");
  const own = isObject(properties) && Object.hasOwn(properties, key) ? [get(properties, key)] : [];
  // patterns are not evaluated, because that could take forever
  const others = own.length > 0 ? [] : ofAnyProperty.map((name) => get(schema, name));
  return [...own, ...others, ...valuesOf(get(schema, "patternProperties"))];
}

function resolve(root: object, anchors: ReadonlyMap<string, object>, ref: string): unknown {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return anchors.get(ref.slice(1));
  let at: unknown = root;
  for (const step of pointerSteps(decoded(ref.slice(1)))) at = isObject(at) ? get(at, step) : undefined;
  return at;
}

function decoded(pointer: string): string {
  try {
    return decodeURIComponent(pointer);
  } catch {
    // not valid percent-encoding: use it as it is
    return pointer;
  }
}

function anchorsIn(root: object): Map<string, object> {
  const anchors = new Map<string, object>();
  const pending: unknown[] = [root];
  while (pending.length > 0) {
    const each = pending.pop();
    if (typeof each !== "object" || each === null) continue;
    if (!Array.isArray(each))
      for (const key of ["$anchor", "$dynamicAnchor"]) {
        const name = get(each, key);
        if (typeof name === "string") anchors.set(name, each);
      }
    pending.push(...Object.values(each));
  }
  return anchors;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function get(of: object, key: string): unknown {
  return Object.hasOwn(of, key) ? Reflect.get(of, key) : undefined;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function valuesOf(value: unknown): unknown[] {
  return isObject(value) ? Object.values(value) : [];
}
