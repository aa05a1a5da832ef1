import { isRedactionMark, redactionMarkStart } from "../model/redaction-mark.ts";
import type { Redactor } from "../model/process.ts";
import type { RunInput } from "../model/vault.ts";
import { type SchemaSecrets, findSchemaSecrets } from "./schema-secrets.ts";
import { markOf } from "./matcher.ts";
import type { NamedValue } from "./secret-values.ts";

export interface Concealed extends RunInput {
  /** Values that are entirely secret. They are also redacted in everything that the run writes. */
  secrets: NamedValue[];
}

/**
 * Removes the secrets from a run's input: parameters that the schema marks as secret, and what the redactor recognizes
 * itself. Returns null if there are none.
 */
export function conceal(schema: object | undefined, input: RunInput, redactor: Redactor): Concealed | null {
  const secrets: NamedValue[] = [];
  const marks = findSchemaSecrets(schema);
  const marked = marks === null ? input.parameters : replaceMarked(input.parameters, marks, marks.root, "", secrets);
  const parameters = redactor.value(marked);
  const prompt = input.prompt === null ? null : redactor.text(input.prompt);
  if (parameters === input.parameters && prompt === input.prompt) return null;
  collectWhole(marked, parameters, secrets);
  // the shape is unchanged: only strings were replaced, by strings
  return { parameters: parameters as RunInput["parameters"], prompt, secrets };
}

/** Returns the same object if nothing in it is marked. */
function replaceMarked(
  value: unknown,
  marks: SchemaSecrets,
  schemas: SchemaSecrets["root"],
  name: string,
  secrets: NamedValue[],
): unknown {
  if (name !== "" && value !== null && marks.isSecret(schemas)) {
    collectAll(value, name, secrets);
    return markOf(name);
  }
  if (typeof value !== "object" || value === null || schemas.length === 0) return value;
  let changed = false;
  const walk = (part: unknown, key: string | number): unknown => {
    const result = replaceMarked(part, marks, marks.below(schemas, key), nameOf(name, key), secrets);
    changed ||= result !== part;
    return result;
  };
  if (Array.isArray(value)) {
    const list = value.map(walk);
    return changed ? list : value;
  }
  const record = Object.entries(value).map(([key, part]) => [key, walk(part, key)]);
  return changed ? Object.fromEntries(record) : value;
}

/** The items of a list have the name of the list. */
function nameOf(parent: string, key: string | number): string {
  return typeof key === "number" ? parent || "item" : key || "parameter";
}

function collectAll(value: unknown, name: string, secrets: NamedValue[]): void {
  if (typeof value === "string") secrets.push({ name, value });
  else if (typeof value === "number") secrets.push({ name, value: String(value) });
  else if (typeof value === "object" && value !== null)
    for (const part of Object.values(value)) collectAll(part, name, secrets);
}

/** Collects strings that the redactor replaced entirely. */
function collectWhole(before: unknown, after: unknown, secrets: NamedValue[]): void {
  if (before === after) return;
  if (typeof before === "string" && typeof after === "string") {
    // under the name in the mark
    if (isRedactionMark(after)) secrets.push({ name: after.slice(redactionMarkStart.length, -1), value: before });
    return;
  }
  if (typeof before !== "object" || before === null || typeof after !== "object" || after === null) return;
  const parts = Object.values(after);
  Object.values(before).forEach((part, at) => collectWhole(part, parts[at], secrets));
}
