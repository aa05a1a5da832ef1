import { readFileSync } from "node:fs";
import { parseDocument } from "yaml";
import type { Config } from "../model/config.ts";
import { configSchema } from "../model/config-schema.ts";
import { RequestError } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";

/** Reads and checks a drover.yaml. Every fault names the file, the line and the key. */
export function loadConfig(file: string): Config {
  const document = parseDocument(readConfig(file), { prettyErrors: true });
  const syntax = document.errors[0];
  if (syntax) {
    const line = syntax.linePos?.[0].line ?? 1;
    throw new RequestError({
      code: "DROVER-CFG-002",
      field: `${file}:${line}`,
      message: `${file}:${line} is not valid YAML: ${syntax.message.split("\n")[0]?.replace(/ at line .*$/, "")}`,
      next: "Mend that line; `drover doctor` checks the file again.",
    });
  }
  const parsed = configSchema.safeParse(document.toJS() ?? {});
  if (parsed.success) return parsed.data;
  const issue = parsed.error.issues[0]!;
  const lineOf = (path: readonly PropertyKey[]): string => {
    const node = document.getIn(path, true);
    const start =
      typeof node === "object" && node && "range" in node && Array.isArray(node.range) ? Number(node.range[0]) : 0;
    return `${file}:${document.toString() ? lineAt(file, start) : 1}`;
  };
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
    return readFileSync(file, "utf8");
  } catch (cause) {
    const why = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown error";
    throw new RequestError({
      code: "DROVER-CFG-001",
      field: file,
      message: `${file} cannot be read (${why}).`,
      next: "Make it readable for this user, or move it away to run with the defaults.",
      cause,
    });
  }
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

function lineAt(file: string, offset: number): number {
  return readFileSync(file, "utf8").slice(0, offset).split("\n").length;
}
