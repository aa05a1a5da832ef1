import { isRedactionMark, redactionMarkStart } from "../model/redaction-mark.ts";
import type { Redactor } from "../model/process.ts";
import type { RunInput } from "../model/vault.ts";
import { type SchemaSecrets, findSchemaSecrets } from "./schema-secrets.ts";
import { createMark } from "./matcher.ts";
import type { NamedValue } from "./secret-values.ts";

export interface ConcealedInput extends RunInput {
  /** Values that are entirely secret. Drover redacts them in the run's output too. */
  secrets: NamedValue[];
}

/**
 * Removes the secrets from a run's input: parameters that the schema marks as secret, and secrets that the redactor
 * recognizes. Returns null if the input has none.
 */
export function conceal(schema: object | undefined, input: RunInput, redactor: Redactor): ConcealedInput | null {
  const secrets: NamedValue[] = [];
  const schemaSecrets = findSchemaSecrets(schema);
  const replaced =
    schemaSecrets === null
      ? input.parameters
      : replaceMarked(input.parameters, schemaSecrets, schemaSecrets.root, "", secrets);
  const parameters = redactor.value(replaced);
  const prompt = input.prompt === null ? null : redactor.text(input.prompt);
  if (parameters === input.parameters && prompt === input.prompt) return null;
  collectReplaced(replaced, parameters, secrets);
  // Only values inside the parameters were replaced.
  return { parameters: parameters as RunInput["parameters"], prompt, secrets };
}

/** Replaces the values that the schema marks as secret. Returns the same object if it has none. */
function replaceMarked(
  value: unknown,
  schemaSecrets: SchemaSecrets,
  schemas: SchemaSecrets["root"],
  name: string,
  secrets: NamedValue[],
): unknown {
  if (name !== "" && value !== null && schemaSecrets.isSecret(schemas)) {
    collectAll(value, name, secrets);
    return createMark(name);
  }
  if (typeof value !== "object" || value === null || schemas.length === 0) return value;
  let isChanged = false;
  const walk = (part: unknown, key: string | number): unknown => {
    const result = replaceMarked(
      part,
      schemaSecrets,
      schemaSecrets.childSchemas(schemas, key),
      getChildName(name, key),
      secrets,
    );
    isChanged ||= result !== part;
    return result;
  };
  if (Array.isArray(value)) {
    const list = value.map(walk);
    return isChanged ? list : value;
  }
  const record = Object.entries(value).map(([key, part]) => [key, walk(part, key)]);
  return isChanged ? Object.fromEntries(record) : value;
}

/** Items of a list get the name of the list. */
function getChildName(parent: string, key: string | number): string {
  return typeof key === "number" ? parent || "item" : key || "parameter";
}

function collectAll(value: unknown, name: string, secrets: NamedValue[]): void {
  if (typeof value === "string") secrets.push({ name, value });
  else if (typeof value === "number") secrets.push({ name, value: String(value) });
  else if (typeof value === "object" && value !== null)
    for (const part of Object.values(value)) collectAll(part, name, secrets);
}

/** Collects strings that the redactor replaced entirely. */
function collectReplaced(before: unknown, after: unknown, secrets: NamedValue[]): void {
  if (before === after) return;
  if (typeof before === "string" && typeof after === "string") {
    // The mark contains the name.
    if (isRedactionMark(after)) secrets.push({ name: after.slice(redactionMarkStart.length, -1), value: before });
    return;
  }
  if (typeof before !== "object" || before === null || typeof after !== "object" || after === null) return;
  const parts = Object.values(after);
  Object.values(before).forEach((part, index) => collectReplaced(part, parts[index], secrets));
}
