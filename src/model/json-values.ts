import { splitPointer } from "./json-pointer.ts";

/** See ./value-sources.ts. */
export type ValueSource =
  | string
  | number
  | boolean
  | null
  | unknown[]
  | { from: string; default?: unknown }
  | { value: unknown };

/** Matches `{{/a/b}}`. */
export const placeholderPattern = /\{\{\s*([^{}]*?)\s*\}\}/g;

/** Returns undefined if the document has no value at the pointer. */
export function getValueAt(document: unknown, pointer: string): unknown {
  let value = document;
  for (const step of splitPointer(pointer)) {
    if (Array.isArray(value)) value = /^(?:0|[1-9]\d{0,9})$/.test(step) ? value[Number(step)] : undefined;
    else if (typeof value === "object" && value !== null && Object.hasOwn(value, step))
      value = Reflect.get(value, step);
    else return undefined;
  }
  return value;
}

/** Resolves each source against the document, and lists the pointers that have no value. */
export function resolveValues(
  sources: Readonly<Record<string, ValueSource>>,
  document: unknown,
): { values: Record<string, unknown>; missing: { name: string; from: string }[] } {
  const values: Record<string, unknown> = {};
  const missing: { name: string; from: string }[] = [];
  for (const [name, source] of Object.entries(sources)) {
    if (typeof source !== "object" || source === null || Array.isArray(source)) values[name] = source;
    else if ("value" in source) values[name] = source.value;
    else {
      const value = getValueAt(document, source.from) ?? source.default;
      if (value === undefined || value === null) missing.push({ name, from: source.from });
      else values[name] = value;
    }
  }
  return { values, missing };
}

/** Inserts strings unchanged, other values as JSON, and nothing for missing values. */
export function fillTemplate(template: string, document: unknown): string {
  return template.replaceAll(placeholderPattern, (_, pointer: string) => {
    const value = getValueAt(document, pointer);
    if (value === undefined || value === null) return "";
    return typeof value === "string" ? value : JSON.stringify(value);
  });
}

/** Fills every string inside a JSON value as a template. */
export function fillTemplates(value: unknown, document: unknown): unknown {
  if (typeof value === "string") return fillTemplate(value, document);
  if (Array.isArray(value)) return value.map((item) => fillTemplates(item, document));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, fillTemplates(item, document)]));
}
