import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { RequestError } from "../model/errors.ts";
import { type CommandInput, type OptionSpec, readText } from "./options.ts";

export const envFileOption: Record<string, OptionSpec> = {
  "env-file": {
    placeholder: "FILE",
    description: "read NAME=value lines for variables that are not set; no .env file is read by default",
  },
};

/** Adds the variables of --env-file to the environment. A variable that is already set, even to "", keeps its value. */
export function withEnvFile(input: CommandInput): CommandInput {
  const fileName = readText(input.options, "env-file");
  if (fileName === undefined) return input;
  const file = resolve(input.cwd, fileName);
  return { ...input, env: { ...parseEnvFile(read(file), fileName), ...input.env } };
}

/**
 * Parses one NAME=value per line, and `#` comments on separate lines. Single quotes are literal, double quotes support
 * \n \r \t \" \\ \$. Nothing is expanded. Lines that other parsers disagree about are rejected.
 */
export function parseEnvFile(content: string, file: string): Record<string, string> {
  const variables = new Map<string, string>();
  for (const [index, raw] of content
    .replace(/^\uFEFF/, "")
    .split(/\r?\n/)
    .entries()) {
    const line = raw.trim();
    if (line === "" || line.startsWith("#")) continue;
    const createFault = (problem: string): RequestError => badLine(file, index + 1, problem);
    const [, name, value] = /^(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)=(.*)$/.exec(line) ?? [];
    if (name === undefined || value === undefined) throw createFault("expected NAME=value");
    if (variables.has(name)) throw createFault(`${name} is set twice`);
    variables.set(name, parseValue(value.trim(), createFault));
  }
  return Object.fromEntries(variables);
}

function parseValue(source: string, createFault: (problem: string) => RequestError): string {
  // oxlint-disable-next-line no-control-regex -- an environment variable cannot contain NUL
  if (/\u0000/.test(source)) throw createFault("the value contains a NUL byte");
  const [quote] = source;
  if (quote === "'" || quote === '"') return unquote(source, quote, createFault);
  if (/['"`]|\s#|\\$/.test(source))
    throw createFault("a value with a quote, a # after a space or a \\ at its end must be quoted");
  return source;
}

const escapes: Record<string, string> = { n: "\n", r: "\r", t: "\t", '"': '"', "\\": "\\", $: "$" };

function unquote(source: string, quote: "'" | '"', createFault: (problem: string) => RequestError): string {
  const [, content, rest] = (quote === "'" ? /^'([^']*)'(.*)$/ : /^"((?:[^"\\]|\\.)*)"(.*)$/).exec(source) ?? [];
  if (content === undefined || rest === undefined) throw createFault("the quote is never closed");
  if (!/^(?:\s+#.*)?$/.test(rest)) throw createFault("unexpected text after the closing quote");
  if (quote === "'") return content;
  return content.replaceAll(/\\(.)/g, (_, letter: string) => {
    const character = escapes[letter];
    if (character === undefined)
      throw createFault(
        `unknown escape \\${letter}: use one of ${Object.keys(escapes)
          .map((known) => `\\${known}`)
          .join(" ")}`,
      );
    return character;
  });
}

function read(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (cause) {
    throw new RequestError({
      code: "DROVER-USE-001",
      field: "--env-file",
      message: `Cannot read --env-file ${file}: ${cause instanceof Error ? cause.message : String(cause)}`,
      next: "Pass a file with NAME=value lines.",
      cause,
    });
  }
}

/** Does not quote the line, because it may contain a secret. */
function badLine(file: string, line: number, problem: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-009",
    field: "--env-file",
    message: `${file}, line ${line}: ${problem}.`,
    next: "Write NAME=value, NAME='value' or NAME=\"value\", one per line; see docs/environment.md.",
  });
}
