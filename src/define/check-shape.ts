import { z } from "zod";
import type { DefinitionFault } from "../model/definition-fault.ts";
import type { ErrorCode } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";
import type { LineOf } from "./structured-text.ts";

export interface Shape<T> {
  schema: z.ZodType<T> & z.ZodObject;
  unknownKey: ErrorCode;
  wrongValue: ErrorCode;
  /** Where people read what each key takes. */
  manual: string;
}

export interface Origin {
  file: string | null;
  lineOf: LineOf | null;
}

/** A value against its schema; every fault with its line, its key and what to do about it. */
export function checkShape<T>(
  value: unknown,
  shape: Shape<T>,
  { file, lineOf }: Origin,
): { ok: true; value: T } | { ok: false; faults: DefinitionFault[] } {
  const parsed = shape.schema.safeParse(value);
  if (parsed.success) return { ok: true, value: parsed.data };
  const lineAt = (path: readonly PropertyKey[]): number | null => lineOf?.(path) ?? null;
  const faults = parsed.error.issues.flatMap((issue): DefinitionFault[] => {
    if (issue.code !== "unrecognized_keys") {
      const key = issue.path.map(String).join(".");
      const missing = issue.code === "invalid_type" && valueAt(value, issue.path) === undefined;
      return [
        {
          code: shape.wrongValue,
          file,
          line: lineAt(issue.path),
          path: key,
          message: missing ? `${key} is missing` : `${key || "the whole file"} has a wrong value: ${issue.message}`,
          next: missing ? `Add ${key}; see ${shape.manual}.` : `See ${shape.manual} for what each key takes.`,
        },
      ];
    }
    const known = keysAt(shape.schema, issue.path);
    return issue.keys.map((key) => {
      const near = suggest(key, known);
      const path = [...issue.path, key];
      const dotted = path.map(String).join(".");
      return {
        code: shape.unknownKey,
        file,
        line: lineAt(path),
        path: dotted,
        message: `unknown key ${dotted}.${near ? ` Did you mean ${near}?` : ""}`,
        next: near ? `Write ${near} instead, or remove the key.` : `Known keys here: ${known.join(", ")}.`,
      };
    });
  });
  return { ok: false, faults };
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value;
  for (const key of path) {
    if (typeof found !== "object" || found === null || !Object.hasOwn(found, key)) return undefined;
    found = Reflect.get(found, key);
  }
  return found;
}

/** The keys a schema knows at a path. */
function keysAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  let found: z.core.$ZodType | undefined = unwrap(schema);
  for (const key of path) {
    if (found instanceof z.ZodObject) found = found.shape[String(key)];
    else if (found instanceof z.ZodArray) found = found.element;
    else return [];
    if (found === undefined) return [];
    found = unwrap(found);
  }
  return found instanceof z.ZodObject ? Object.keys(found.shape) : [];
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodNullable || schema instanceof z.ZodDefault)
    return unwrap(schema.unwrap());
  return schema;
}
