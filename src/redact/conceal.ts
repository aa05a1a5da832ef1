import { isRedactionMark, redactionMarkStart } from "../model/redaction-mark.ts";
import type { Redactor } from "../model/process.ts";
import type { RunInput } from "../model/vault.ts";
import { type Marks, marksOf } from "./marked-parameters.ts";
import { markOf } from "./matcher.ts";
import type { NamedValue } from "./secret-values.ts";

export interface Concealed extends RunInput {
  /** Values that are secret as a whole, to be looked for in whatever else is written. */
  secrets: NamedValue[];
}

/**
 * What a run is asked with, without its secrets: parameters that the schema marks, and what the redactor recognises by
 * itself. null where there are none.
 */
export function conceal(schema: object | undefined, asked: RunInput, redactor: Redactor): Concealed | null {
  const secrets: NamedValue[] = [];
  const marks = marksOf(schema);
  const marked = marks === null ? asked.parameters : withoutMarked(asked.parameters, marks, marks.root, "", secrets);
  const parameters = redactor.value(marked);
  const prompt = asked.prompt === null ? null : redactor.text(asked.prompt);
  if (parameters === asked.parameters && prompt === asked.prompt) return null;
  collectWhole(marked, parameters, secrets);
  // Of the same shape: strings became strings, and only inside of it.
  return { parameters: parameters as RunInput["parameters"], prompt, secrets };
}

/** The same object where nothing in it is marked. */
function withoutMarked(
  value: unknown,
  marks: Marks,
  applying: Marks["root"],
  name: string,
  secrets: NamedValue[],
): unknown {
  if (name !== "" && value !== null && marks.isSecret(applying)) {
    collectAll(value, name, secrets);
    return markOf(name);
  }
  if (typeof value !== "object" || value === null || applying.length === 0) return value;
  let changed = false;
  const walk = (part: unknown, key: string | number): unknown => {
    const result = withoutMarked(part, marks, marks.below(applying, key), nameOf(name, key), secrets);
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

/** The items of a list are called as the list is. */
function nameOf(parent: string, key: string | number): string {
  return typeof key === "number" ? parent || "item" : key || "parameter";
}

function collectAll(value: unknown, name: string, secrets: NamedValue[]): void {
  if (typeof value === "string") secrets.push({ name, value });
  else if (typeof value === "number") secrets.push({ name, value: String(value) });
  else if (typeof value === "object" && value !== null)
    for (const part of Object.values(value)) collectAll(part, name, secrets);
}

/** Strings that the redactor replaced as a whole. */
function collectWhole(before: unknown, after: unknown, secrets: NamedValue[]): void {
  if (before === after) return;
  if (typeof before === "string" && typeof after === "string") {
    // by the name that it is shown with
    if (isRedactionMark(after)) secrets.push({ name: after.slice(redactionMarkStart.length, -1), value: before });
    return;
  }
  if (typeof before !== "object" || before === null || typeof after !== "object" || after === null) return;
  const parts = Object.values(after);
  Object.values(before).forEach((part, at) => collectWhole(part, parts[at], secrets));
}
