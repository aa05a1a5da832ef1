import { escapePointer } from "../../model/argument-rules.ts";

export interface SchemaFault {
  /** JSON pointer: into the value, or into the schema where that is at fault. */
  path: string;
  message: string;
}

const maxBytes = 64 * 1024;
const maxDepth = 40;
const maxNodes = 5000;

/** Keywords that can cost more than their size suggests: regular expressions, comparisons of all pairs, references that multiply. */
const costlyKeywords = new Set([
  "pattern",
  "patternProperties",
  "format",
  "uniqueItems",
  "$ref",
  "$dynamicRef",
  "$recursiveRef",
]);
const referenceKeywords = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);
/** Names that mean something else to the objects of the language than to the person who writes them. */
const forbiddenKeys = new Set(["__proto__", "constructor"]);

export interface SchemaMeasure {
  text: string;
  nodes: number;
  costly: boolean;
}

/** What we refuse in a schema before any code is made of it. Schemas come from people we do not know. */
export function schemaLimitFaults(schema: unknown): SchemaFault[] {
  const measured = measureSchema(schema);
  return "faults" in measured ? measured.faults : [];
}

export function measureSchema(schema: unknown): SchemaMeasure | { faults: SchemaFault[] } {
  const faults: SchemaFault[] = [];
  let nodes = 0;
  let costly = false;
  // a stack of our own: depth must be measured without a recursion it could exhaust
  const pending = [{ value: schema, path: "", depth: 0 }];
  for (let item = pending.pop(); item !== undefined && faults.length < 10; item = pending.pop()) {
    const { value, path, depth } = item;
    nodes++;
    if (depth > maxDepth) return { faults: [{ path: "", message: `is nested more than ${maxDepth} levels deep` }] };
    if (nodes > maxNodes) return { faults: [{ path: "", message: `has more than ${maxNodes} parts` }] };
    if (typeof value === "number" && !Number.isFinite(value))
      faults.push({ path, message: "is no number that JSON has" });
    if (typeof value !== "object" || value === null) continue;
    for (const [key, part] of Object.entries(value)) {
      const at = `${path}/${escapePointer(key)}`;
      if (!Array.isArray(value)) {
        if (forbiddenKeys.has(key)) faults.push({ path: at, message: "is a key that is never allowed" });
        if (costlyKeywords.has(key)) costly = true;
        if (typeof part === "string") faults.push(...referenceFaults(key, part, at, depth));
      }
      pending.push({ value: part, path: at, depth: depth + 1 });
    }
  }
  if (faults.length > 0) return { faults };
  const text = JSON.stringify(schema) ?? "";
  if (Buffer.byteLength(text) > maxBytes)
    return { faults: [{ path: "", message: `is larger than ${maxBytes / 1024} KB` }] };
  return { text, nodes, costly };
}

function referenceFaults(key: string, value: string, path: string, depth: number): SchemaFault[] {
  if (referenceKeywords.has(key) && !value.startsWith("#")) {
    return [
      {
        path,
        message: "refers to another document; only references inside the schema (beginning with #) are followed",
      },
    ];
  }
  if (key === "$id" && depth > 0) return [{ path, message: "may only stand at the top of a schema" }];
  return [];
}

export interface ValueLimits {
  maxBytes: number;
  maxDepth: number;
  refuseKeys: boolean;
}

export type ValueMeasure = { nodes: number; text: string } | { fault: SchemaFault };

/** The size of a value in parts, and its JSON text; or the first thing about it we refuse. */
export function measureValue(value: unknown, limits: ValueLimits): ValueMeasure {
  const counted = countParts(value, limits, 0);
  if (typeof counted !== "number") return { fault: counted };
  const text = JSON.stringify(value) ?? "null";
  const bytes = Buffer.byteLength(text);
  if (bytes > limits.maxBytes)
    return { fault: { path: "", message: `is ${bytes} bytes of JSON; at most ${limits.maxBytes} are taken` } };
  return { nodes: counted, text };
}

/** Recursion goes no deeper than the limit. A path is only put together on the way out of a fault. */
function countParts(value: unknown, limits: ValueLimits, depth: number): number | SchemaFault {
  // a long text costs like many short ones
  if (typeof value === "string") return 1 + value.length / 256;
  if (typeof value === "number" && !Number.isFinite(value))
    return { path: "", message: `is ${value}, which JSON lacks` };
  if (typeof value !== "object" || value === null) return 1;
  if (depth >= limits.maxDepth) return { path: "", message: `is nested more than ${limits.maxDepth} levels deep` };
  let nodes = 1;
  for (const key of Object.keys(value)) {
    if (limits.refuseKeys && forbiddenKeys.has(key))
      return { path: `/${key}`, message: "is a key that is never allowed" };
    const part = countParts(Reflect.get(value, key), limits, depth + 1);
    if (typeof part !== "number") return { path: `/${escapePointer(key)}${part.path}`, message: part.message };
    nodes += part;
  }
  return nodes;
}
