import * as z from "zod";
import type { DefinitionFault } from "../model/definition-fault.ts";
import type { ErrorCode } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";
import type { InexactNumber, FindLine } from "./structured-text.ts";

export interface Shape<T> {
  schema: z.ZodType<T>;
  unknownKey: ErrorCode;
  wrongValue: ErrorCode;
  /** The documentation page that describes the keys. */
  manual: string;
}

export interface Origin {
  file: string | null;
  findLine: FindLine | null;
  inexact?: readonly InexactNumber[];
}

/** Validates a value against its schema. Each fault has the line, the key and how to fix it. */
export function checkShape<T>(
  value: unknown,
  shape: Shape<T>,
  { file, findLine, inexact = [] }: Origin,
): { ok: true; value: T } | { ok: false; faults: DefinitionFault[] } {
  const parsed = shape.schema.safeParse(value);
  if (parsed.success && inexact.length === 0) return { ok: true, value: parsed.data };
  const createFault = (
    code: ErrorCode,
    path: readonly PropertyKey[],
    message: string,
    next: string,
  ): DefinitionFault => {
    return { code, file, line: findLine?.(path) ?? null, path: formatKey(path), message, next };
  };
  const inexactFaults = inexact.slice(0, maxFaults).map(({ path, text }) => {
    const message = `${formatKey(path) || "the whole file"} has a wrong value: a number cannot hold ${text} exactly`;
    const next = "Write it in quotes, as a string, or as a number with at most 15 digits.";
    return createFault(shape.wrongValue, path, message, next);
  });
  const faults = (parsed.error?.issues ?? [])
    .flatMap(flattenUnionIssue)
    .slice(0, maxFaults)
    .flatMap((issue): DefinitionFault[] => {
      if (issue.code !== "unrecognized_keys") {
        const key = formatKey(issue.path);
        const missing = issue.code === "invalid_type" && getValueAt(value, issue.path) === undefined;
        const message = missing
          ? `${key} is missing`
          : `${key || "the whole file"} has a wrong value: ${issue.message}`;
        const next = missing ? `Add ${key}; see ${shape.manual}.` : `See ${shape.manual} for what each key takes.`;
        return [createFault(shape.wrongValue, issue.path, message, next)];
      }
      const knownKeys = listKeysAt(shape.schema, issue.path);
      return issue.keys.slice(0, maxFaults).map((key) => {
        const suggestion = suggest(key, knownKeys);
        const path = [...issue.path, key];
        const message = `unknown key ${formatKey(path)}.${suggestion ? ` Did you mean ${suggestion}?` : ""}`;
        const next = suggestion
          ? `Write ${suggestion} instead, or remove the key.`
          : `Known keys here: ${knownKeys.join(", ")}.`;
        return createFault(shape.unknownKey, path, message, next);
      });
    });
  return { ok: false, faults: [...inexactFaults, ...faults] };
}

/** The most faults reported for one file. Finding the line of each fault takes time. */
const maxFaults = 50;

/** Replaces a union's issue by the issues of the variant the author meant, if only one variant has the value's type. */
function flattenUnionIssue(issue: z.core.$ZodIssue): z.core.$ZodIssue[] {
  if (issue.code !== "invalid_union") return [issue];
  const candidates = issue.errors.filter(
    (issues) => !issues.some(({ code, path }) => code === "invalid_type" && path.length === 0),
  );
  if (candidates.length !== 1) return [issue];
  return candidates[0]!.flatMap((inner) => flattenUnionIssue({ ...inner, path: [...issue.path, ...inner.path] }));
}

function formatKey(path: readonly PropertyKey[]): string {
  return path.map(String).join(".");
}

function getValueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let current = value;
  for (const key of path) {
    if (typeof current !== "object" || current === null || !Object.hasOwn(current, key)) return undefined;
    current = Reflect.get(current, key);
  }
  return current;
}

/** The keys that a schema allows at a path. */
function listKeysAt(schema: z.core.$ZodType, path: readonly PropertyKey[]): string[] {
  let current: z.core.$ZodType | undefined = unwrap(schema);
  for (const key of path) {
    if (current instanceof z.ZodObject) current = current.shape[String(key)];
    else if (current instanceof z.ZodArray) current = current.element;
    else if (current instanceof z.ZodRecord) current = current.valueType;
    else return [];
    if (current === undefined) return [];
    current = unwrap(current);
  }
  return current instanceof z.ZodObject ? Object.keys(current.shape) : [];
}

function unwrap(schema: z.core.$ZodType): z.core.$ZodType {
  if (
    schema instanceof z.ZodOptional ||
    schema instanceof z.ZodNullable ||
    schema instanceof z.ZodDefault ||
    schema instanceof z.ZodPrefault
  )
    return unwrap(schema.unwrap());
  if (schema instanceof z.ZodUnion)
    return schema.options.map(unwrap).find((option) => option instanceof z.ZodObject) ?? schema;
  return schema;
}
