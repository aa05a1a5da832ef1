import { splitPointer } from "../model/json-pointer.ts";

/** The schemas that may apply to one part of a value. A schema that applies only under a condition is included. */
type ApplicableSchemas = readonly object[];

export interface SchemaSecrets {
  /** Reports whether any of the schemas marks the value as secret. */
  isSecret(schemas: ApplicableSchemas): boolean;
  root: ApplicableSchemas;
  childSchemas(schemas: ApplicableSchemas, key: string | number): ApplicableSchemas;
}

/**
 * The most schemas visited for one value. Beyond that, everything counts as secret, which bounds the cost of a hostile
 * schema.
 */
const maxVisitedSchemas = 10_000;

const secretKeywordPattern = /"writeOnly":true|"format":"password"/;

const combinators = ["allOf", "anyOf", "oneOf"] as const;
const conditionals = ["if", "then", "else"] as const;
const itemKeywords = ["contains", "additionalItems", "unevaluatedItems"] as const;
const propertyKeywords = ["additionalProperties", "unevaluatedProperties"] as const;

/**
 * Finds which parameters a JSON Schema marks as secret with `"format": "password"` or `"writeOnly": true`; null if
 * none.
 */
export function findSchemaSecrets(schema: object | undefined): SchemaSecrets | null {
  if (schema === undefined || !secretKeywordPattern.test(JSON.stringify(schema))) return null;
  const anchors = collectAnchors(schema);
  let visitedCount = 0;
  const expand = (schemas: Iterable<unknown>): object[] => {
    const visited = new Set<object>();
    const pending = [...schemas];
    while (pending.length > 0 && visitedCount <= maxVisitedSchemas) {
      const candidate = pending.pop();
      if (!isObject(candidate) || visited.has(candidate)) continue;
      visitedCount += 1;
      visited.add(candidate);
      for (const key of combinators) pending.push(...toList(get(candidate, key)));
      for (const key of conditionals) pending.push(get(candidate, key));
      pending.push(...toValues(get(candidate, "dependentSchemas")), ...toValues(get(candidate, "dependencies")));
      for (const key of ["$ref", "$dynamicRef", "$recursiveRef"]) {
        const ref = get(candidate, key);
        if (typeof ref === "string") pending.push(resolve(schema, anchors, ref));
      }
    }
    return [...visited];
  };
  const childCache = new Map<ApplicableSchemas, Map<string | number, ApplicableSchemas>>();
  return {
    root: expand([schema]),
    isSecret: (schemas) =>
      visitedCount > maxVisitedSchemas ||
      schemas.some((candidate) => get(candidate, "writeOnly") === true || get(candidate, "format") === "password"),
    childSchemas(schemas, key) {
      // All items of a list share their schemas, unless the schema distinguishes them by index.
      const cacheKey = typeof key === "number" && !schemas.some(distinguishesItems) ? 0 : key;
      const children = childCache.get(schemas) ?? new Map<string | number, ApplicableSchemas>();
      childCache.set(schemas, children);
      const result = children.get(cacheKey) ?? expand(schemas.flatMap((parent) => findChildren(parent, cacheKey)));
      children.set(cacheKey, result);
      return result;
    },
  };
}

function distinguishesItems(schema: object): boolean {
  return Array.isArray(get(schema, "items")) || get(schema, "prefixItems") !== undefined;
}

function findChildren(schema: object, key: string | number): unknown[] {
  if (typeof key === "number") {
    const items = get(schema, "items");
    const itemSchemas = Array.isArray(items) ? [items[key]] : [items];
    return [...itemSchemas, toList(get(schema, "prefixItems"))[key], ...itemKeywords.map((name) => get(schema, name))];
  }
  const properties = get(schema, "properties");
  const named = isObject(properties) && Object.hasOwn(properties, key) ? [get(properties, key)] : [];
  // Include all patterns without evaluating them, because a hostile pattern could take exponential time.
  const unnamed = named.length > 0 ? [] : propertyKeywords.map((name) => get(schema, name));
  return [...named, ...unnamed, ...toValues(get(schema, "patternProperties"))];
}

function resolve(root: object, anchors: ReadonlyMap<string, object>, ref: string): unknown {
  if (ref === "#") return root;
  if (!ref.startsWith("#/")) return anchors.get(ref.slice(1));
  let target: unknown = root;
  for (const step of splitPointer(decodePointer(ref.slice(1))))
    target = isObject(target) ? get(target, step) : undefined;
  return target;
}

function decodePointer(pointer: string): string {
  try {
    return decodeURIComponent(pointer);
  } catch {
    // The percent-encoding is invalid, so use the pointer unchanged.
    return pointer;
  }
}

function collectAnchors(root: object): Map<string, object> {
  const anchors = new Map<string, object>();
  const pending: unknown[] = [root];
  while (pending.length > 0) {
    const candidate = pending.pop();
    if (typeof candidate !== "object" || candidate === null) continue;
    if (!Array.isArray(candidate))
      for (const key of ["$anchor", "$dynamicAnchor"]) {
        const name = get(candidate, key);
        if (typeof name === "string") anchors.set(name, candidate);
      }
    pending.push(...Object.values(candidate));
  }
  return anchors;
}

function isObject(value: unknown): value is object {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function get(object: object, key: string): unknown {
  return Object.hasOwn(object, key) ? Reflect.get(object, key) : undefined;
}

function toList(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function toValues(value: unknown): unknown[] {
  return isObject(value) ? Object.values(value) : [];
}
