import { escapePointer } from "../../model/json-pointer.ts";

export interface SchemaFault {
  /** A JSON pointer into the value, or into the schema if the schema is at fault. */
  path: string;
  message: string;
}

const maxBytes = 64 * 1024;
const maxDepth = 40;
const maxNodes = 5000;

/** References can multiply, so they cost more than their size suggests. */
const referenceKeywords = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);
/** The dialects the engine implements. Any other `$schema` would promise rules that are not applied. */
const dialectPattern = /^https?:\/\/json-schema\.org\/(?:draft\/2020-12|draft-0[67])\/schema#?$/;
/** Matches `scheme://host` and `//host`. A backslash counts as a slash, as in many URL parsers. */
const hostPattern = /^[^a-z\\/]*(?:[a-z][a-z0-9+.-]*:)?[\\/]{2}/i;
/** Formats that are checked in linear time. The others are regular expressions whose cost is not known. */
const quickFormats = new Set(["date", "time", "date-time", "uuid", "int32", "int64", "float", "double"]);
/** Keys with a special meaning in JavaScript objects. */
const forbiddenKeys = new Set(["__proto__", "constructor"]);

export interface SchemaMeasure {
  text: string;
  nodes: number;
  /** Whether checking may cost more than the schema's size and patterns suggest. */
  isCostly: boolean;
  /** The regular expressions in the schema. */
  patterns: string[];
  /** Whether it compares the items of a list with each other. */
  comparesAll: boolean;
}

/** Checks a schema against the limits before it is compiled, because schemas come from untrusted users. */
export function checkSchemaLimits(schema: unknown): SchemaFault[] {
  const measured = measureSchema(schema);
  return "faults" in measured ? measured.faults : [];
}

export function measureSchema(schema: unknown): SchemaMeasure | { faults: SchemaFault[] } {
  const faults: SchemaFault[] = [];
  const cost = { isCostly: false, patterns: [] as string[], comparesAll: false };
  let nodes = 0;
  // An explicit stack, because a deep schema would overflow the stack of a recursive walk.
  const pending = [{ value: schema, path: "", depth: 0 }];
  for (let item = pending.pop(); item !== undefined && faults.length < 10; item = pending.pop()) {
    const { value, path, depth } = item;
    nodes++;
    if (depth > maxDepth) return { faults: [{ path: "", message: `is nested more than ${maxDepth} levels deep` }] };
    if (nodes > maxNodes)
      return { faults: [{ path: "", message: `has more than ${maxNodes} values (objects, lists, strings, numbers)` }] };
    if (typeof value === "number" && !Number.isFinite(value))
      faults.push({ path, message: "is not a number JSON can represent" });
    if (typeof value !== "object" || value === null) continue;
    for (const [key, part] of Object.entries(value)) {
      const partPath = `${path}/${escapePointer(key)}`;
      if (!Array.isArray(value)) {
        if (forbiddenKeys.has(key)) faults.push({ path: partPath, message: "is a key that is never allowed" });
        addCost(cost, key, part);
        if (typeof part === "string") faults.push(...checkReference(key, part, partPath, depth));
        else if (key === "$schema" && depth === 0) faults.push({ path: partPath, message: "must be a string" });
      }
      pending.push({ value: part, path: partPath, depth: depth + 1 });
    }
  }
  if (faults.length > 0) return { faults };
  const text = JSON.stringify(schema) ?? "";
  if (Buffer.byteLength(text) > maxBytes)
    return { faults: [{ path: "", message: `is larger than ${maxBytes / 1024} KB` }] };
  return { text, nodes, ...cost };
}

/** Counts a property with the name of a keyword as well. Overestimating is fine. */
function addCost(cost: Pick<SchemaMeasure, "isCostly" | "patterns" | "comparesAll">, key: string, part: unknown): void {
  if (referenceKeywords.has(key)) cost.isCostly = true;
  else if (key === "format") cost.isCostly ||= !(typeof part === "string" && quickFormats.has(part));
  else if (key === "uniqueItems") cost.comparesAll = true;
  else if (key === "pattern" && typeof part === "string") cost.patterns.push(part);
  else if (key === "patternProperties" && typeof part === "object" && part !== null)
    cost.patterns.push(...Object.keys(part));
}

function checkReference(key: string, value: string, path: string, depth: number): SchemaFault[] {
  if (referenceKeywords.has(key) && !value.startsWith("#")) {
    return [
      {
        path,
        message: "refers to another document; only references inside the schema (starting with #) are followed",
      },
    ];
  }
  if ((key === "$id" || key === "$schema") && depth > 0)
    return [{ path, message: "is only allowed at the top of a schema" }];
  if (key === "$id" && hostPattern.test(value))
    return [{ path, message: `refers to another host (${quoteShort(value)}); nothing is fetched, so leave it out` }];
  if (key === "$schema" && !dialectPattern.test(value))
    return [{ path, message: `is ${quoteShort(value)}; only JSON Schema 2020-12, draft-07 and draft-06 are checked` }];
  return [];
}

function quoteShort(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
}

export interface ValueLimits {
  maxBytes: number;
  maxDepth: number;
  rejectForbiddenKeys: boolean;
}

export type ValueMeasure = { nodes: number; text: string } | { fault: SchemaFault };

/** Returns the number of parts of a value and its JSON text, or the first limit it exceeds. */
export function measureValue(value: unknown, limits: ValueLimits): ValueMeasure {
  const counted = countParts(value, limits, 0);
  if (typeof counted !== "number") return { fault: counted };
  const text = JSON.stringify(value) ?? "null";
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.maxBytes)
    return { fault: { path: "", message: `is ${bytes} bytes of JSON; at most ${limits.maxBytes} are allowed` } };
  return { nodes: counted, text };
}

/** The recursion is bounded by the depth limit. The path is only built while returning a fault. */
function countParts(value: unknown, limits: ValueLimits, depth: number): number | SchemaFault {
  // Long text costs as much as many short strings.
  if (typeof value === "string") return 1 + value.length / 256;
  if (typeof value === "number" && !Number.isFinite(value))
    return { path: "", message: `is ${value}, which JSON cannot represent` };
  if (typeof value !== "object" || value === null) return 1;
  if (depth >= limits.maxDepth) return { path: "", message: `is nested more than ${limits.maxDepth} levels deep` };
  let nodes = 1;
  for (const key of Object.keys(value)) {
    if (limits.rejectForbiddenKeys && forbiddenKeys.has(key))
      return { path: `/${key}`, message: "is a key that is never allowed" };
    const part = countParts(Reflect.get(value, key), limits, depth + 1);
    if (typeof part !== "number") return { path: `/${escapePointer(key)}${part.path}`, message: part.message };
    nodes += part;
  }
  return nodes;
}
