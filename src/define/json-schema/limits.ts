import { escapePointer } from "../../model/to-arguments.ts";

export interface SchemaFault {
  /** JSON pointer: into the value, or into the schema where that is at fault. */
  path: string;
  message: string;
}

const maxBytes = 64 * 1024;
const maxDepth = 40;
const maxNodes = 5000;

/** References can multiply: they cost more than their size suggests. */
const referenceKeywords = new Set(["$ref", "$dynamicRef", "$recursiveRef"]);
/** By which the engine really checks. Any other `$schema` promises rules that nobody would apply. */
const knownDialect = /^https?:\/\/json-schema\.org\/(?:draft\/2020-12|draft-0[67])\/schema#?$/;
/** `scheme://host` and `//host`; a backslash counts as a slash, as it does to many readers of URLs. */
const namesHost = /^[^a-z\\/]*(?:[a-z][a-z0-9+.-]*:)?[\\/]{2}/i;
/** Formats whose check takes as long as the text is. Others are regular expressions that we have not looked at. */
const quickFormats = new Set(["date", "time", "date-time", "uuid", "int32", "int64", "float", "double"]);
/** Names that mean something else to the objects of the language than to the person who writes them. */
const forbiddenKeys = new Set(["__proto__", "constructor"]);

export interface SchemaMeasure {
  text: string;
  nodes: number;
  /** It can cost more than its size suggests, and than the patterns below. */
  costly: boolean;
  /** Regular expressions in it. */
  patterns: string[];
  /** It compares the items of a list with each other. */
  comparesAll: boolean;
}

/** What we refuse in a schema before any code is made of it. Schemas come from people we do not know. */
export function schemaLimitFaults(schema: unknown): SchemaFault[] {
  const measured = measureSchema(schema);
  return "faults" in measured ? measured.faults : [];
}

export function measureSchema(schema: unknown): SchemaMeasure | { faults: SchemaFault[] } {
  const faults: SchemaFault[] = [];
  const cost = { costly: false, patterns: [] as string[], comparesAll: false };
  let nodes = 0;
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
        addCost(cost, key, part);
        if (typeof part === "string") faults.push(...referenceFaults(key, part, at, depth));
        else if (key === "$schema" && depth === 0) faults.push({ path: at, message: "must be a string" });
      }
      pending.push({ value: part, path: at, depth: depth + 1 });
    }
  }
  if (faults.length > 0) return { faults };
  const text = JSON.stringify(schema) ?? "";
  if (Buffer.byteLength(text) > maxBytes)
    return { faults: [{ path: "", message: `is larger than ${maxBytes / 1024} KB` }] };
  return { text, nodes, ...cost };
}

/** Also of what only looks like a keyword, such as a property of that name: too careful is fine. */
function addCost(cost: Pick<SchemaMeasure, "costly" | "patterns" | "comparesAll">, key: string, part: unknown): void {
  if (referenceKeywords.has(key)) cost.costly = true;
  else if (key === "format") cost.costly ||= !(typeof part === "string" && quickFormats.has(part));
  else if (key === "uniqueItems") cost.comparesAll = true;
  else if (key === "pattern" && typeof part === "string") cost.patterns.push(part);
  else if (key === "patternProperties" && typeof part === "object" && part !== null)
    cost.patterns.push(...Object.keys(part));
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
  if ((key === "$id" || key === "$schema") && depth > 0)
    return [{ path, message: "may only stand at the top of a schema" }];
  if (key === "$id" && namesHost.test(value))
    return [{ path, message: `names another host (${cut(value)}); nothing is fetched, so leave it out` }];
  if (key === "$schema" && !knownDialect.test(value))
    return [{ path, message: `is ${cut(value)}; only JSON Schema 2020-12, draft-07 and draft-06 are checked` }];
  return [];
}

function cut(text: string): string {
  return JSON.stringify(text.length > 100 ? `${text.slice(0, 100)}…` : text);
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
