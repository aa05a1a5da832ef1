import { readFileSync, statSync } from "node:fs";
import type { Config } from "../model/config.ts";
import { configSchema } from "../model/config-schema.ts";
import { RequestError } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";
import { readYaml } from "./structured-text.ts";

/** Reads and checks a drover.yaml. Every fault names the file, the line and the key. */
export function loadConfig(file: string): Config {
  const read = readYaml(readConfig(file));
  if (!read.ok) {
    throw new RequestError({
      code: "DROVER-CFG-002",
      field: `${file}:${read.line}`,
      message: `${file}:${read.line} is not valid YAML: ${read.problem}`,
      next: "Mend that line; `drover doctor` checks the file again.",
    });
  }
  const parsed = configSchema.safeParse(read.value ?? {});
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  const lineOf = (path: readonly PropertyKey[]): string => `${file}:${read.lineOf(path)}`;
  if (issue.code === "unrecognized_keys") throw unknownKey(issue, lineOf);
  const key = issue.path.map(String).join(".") || "the whole file";
  throw new RequestError({
    code: "DROVER-CFG-004",
    field: key,
    message: `${lineOf(issue.path)}: ${key} has a wrong value: ${issue.message}`,
    next: 'See docs/commands.md, "Configuration", for what each key takes.',
  });
}

function readConfig(file: string): string {
  try {
    // reading from a pipe would wait for a writer
    if (!statSync(file).isFile()) throw unreadable(file, "it is not a file");
    return readFileSync(file, "utf8");
  } catch (cause) {
    if (cause instanceof RequestError) throw cause;
    throw unreadable(file, cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error", cause);
  }
}

function unreadable(file: string, why: string, cause?: unknown): RequestError {
  return new RequestError({
    code: "DROVER-CFG-001",
    field: file,
    message: `${file} cannot be read (${why}).`,
    next: "Make it a file that this user can read, or move it away to run with the defaults.",
    cause,
  });
}

function unknownKey(
  issue: { keys: string[]; path: readonly PropertyKey[] },
  lineOf: (path: readonly PropertyKey[]) => string,
): RequestError {
  const key = issue.keys[0]!;
  const path = [...issue.path.map(String), key];
  const near = suggest(key, keysAt(issue.path));
  return new RequestError({
    code: "DROVER-CFG-003",
    field: path.join("."),
    message: `${lineOf(path)}: unknown key ${path.join(".")}.${near ? ` Did you mean ${near}?` : ""}`,
    next: near ? `Write ${near} instead, or remove the line.` : `Known keys here: ${keysAt(issue.path).join(", ")}.`,
  });
}

/** The keys the schema knows at a path, for suggestions. */
function keysAt(path: readonly PropertyKey[]): string[] {
  let value: unknown = configSchema.parse({});
  for (const key of path) {
    value = typeof value === "object" && value !== null ? Reflect.get(value, key) : undefined;
  }
  return typeof value === "object" && value !== null ? Object.keys(value) : [];
}
