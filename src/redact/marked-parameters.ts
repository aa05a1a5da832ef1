import { pointerSteps } from "../model/to-arguments.ts";

/** Schemas that may apply at one place of a value. Where it is not clear whether one does, it counts. */
type Applying = readonly object[];

export interface Marks {
  /** Whether the schema says that what stands here is secret. */
  isSecret(applying: Applying): boolean;
  root: Applying;
  below(applying: Applying, key: string | number): Applying;
}

/** Steps of the walk, over all of a value: past them everything counts as secret. A hostile schema costs no more than that. */
const mostSteps = 10_000;

const anyMark = /"writeOnly":true|"format":"password"/;

const inPlace = ["allOf", "anyOf", "oneOf"] as const;
const conditional = ["if", "then", "else"] as const;
const ofAnyItem = ["contains", "additionalItems", "unevaluatedItems"] as const;
const ofAnyProperty = ["additionalProperties", "unevaluatedProperties"] as const;

/** Which parameters a JSON Schema marks as secret: `"format": "password"` or `"writeOnly": true`. null: none. */
export function marksOf(schema: object | undefined): Marks | null {
  if (schema === undefined || !anyMark.test(JSON.stringify(schema))) return null;
  const anchors = anchorsIn(schema);
  let steps = 0;
  const expand = (schemas: Iterable<unknown>): object[] => {
    const found = new Set<object>();
    const pending = [...schemas];
    while (pending.length > 0 && steps <= mostSteps) {
      const one = pending.pop();
      if (!isObject(one) || found.has(one)) continue;
      steps += 1;
      found.add(one);
      for (const key of inPlace) pending.push(...listOf(get(one, key)));
      for (const key of conditional) pending.push(get(one, key));
      pending.push(...valuesOf(get(one, "dependentSchemas")), ...valuesOf(get(one, "dependencies")));
      for (const key of ["$ref", "$dynamicRef", "$recursiveRef"]) {
        const ref = get(one, key);
        if (typeof ref === "string") pending.push(resolve(schema, anchors, ref));
      }
    }
    return [...found];
  };
  const known = new Map<Applying, Map<string | number, Applying>>();
  return {
    root: expand([schema]),
    isSecret: (applying) =>
      steps > mostSteps || applying.some((one) => get(one, "writeOnly") === true || get(one, "format") === "password"),
    below(applying, key) {
      // the items of a list are alike, unless the schema counts them
      const like = typeof key === "number" && !applying.some(countsItems) ? 0 : key;
      const children = known.get(applying) ?? new Map<string | number, Applying>();
      known.set(applying, children);
      const found = children.get(like) ?? expand(applying.flatMap((one) => childrenOf(one, like)));
      children.set(like, found);
      return found;
    },
  };
}

function countsItems(schema: object): boolean {
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
  // A pattern is not tried: that could take for ever.
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
    // as it is written, then
    return pointer;
  }
}

function anchorsIn(root: object): Map<string, object> {
  const anchors = new Map<string, object>();
  const pending: unknown[] = [root];
  while (pending.length > 0) {
    const one = pending.pop();
    if (typeof one !== "object" || one === null) continue;
    if (!Array.isArray(one))
      for (const key of ["$anchor", "$dynamicAnchor"]) {
        const name = get(one, key);
        if (typeof name === "string") anchors.set(name, one);
      }
    pending.push(...Object.values(one));
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
