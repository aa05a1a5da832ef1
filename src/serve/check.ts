import type * as z from "zod";
import { suggest } from "../model/suggest.ts";
import type { ProblemFault } from "../wire/problem.ts";
import { Refusal } from "./refusal.ts";

/** Parses a part of the request with its schema. Throws a Refusal that names the first faults by their paths. */
export function check<T extends z.ZodType>(
  schema: T,
  value: unknown,
  part: "body" | "query" | "path" | "header",
  maxFaults = 50,
): z.output<T> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const faults = result.error.issues.slice(0, maxFaults).flatMap((issue) => toFaults(schema, issue, part, maxFaults));
  const first = faults[0];
  throw new Refusal(
    400,
    "DROVER-API-006",
    first ? `${first.path}: ${first.message}` : "The request does not match its schema.",
    { faults: faults.slice(0, maxFaults) },
  );
}

const maxKeyLength = 200;

function toFaults(schema: z.ZodType, issue: z.core.$ZodIssue, part: string, maxFaults: number): ProblemFault[] {
  if (issue.code === "unrecognized_keys") {
    return issue.keys.slice(0, maxFaults).map((key) => ({
      path: formatPath(part, [...issue.path, key]),
      message: describeUnknownKey(key, issue.path.length === 0 ? schema : null),
    }));
  }
  return [{ path: formatPath(part, issue.path), message: issue.message }];
}

function describeUnknownKey(key: string, schema: z.ZodType | null): string {
  const shape: unknown = schema === null ? null : Reflect.get(schema, "shape");
  const suggestion = typeof shape === "object" && shape !== null ? suggest(key, Object.keys(shape)) : undefined;
  return suggestion ? `unknown field; did you mean ${suggestion}?` : "unknown field";
}

function formatPath(part: string, path: readonly PropertyKey[]): string {
  return path.reduce<string>(
    (text, key) => (typeof key === "number" ? `${text}[${key}]` : `${text}.${truncateKey(String(key))}`),
    part,
  );
}

function truncateKey(key: string): string {
  return key.length > maxKeyLength ? `${key.slice(0, maxKeyLength)}...` : key;
}
