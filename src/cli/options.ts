import { RequestError } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";
import type { Environment } from "../model/environment.ts";

/** One command: its arguments and options, its help text and its implementation. */
export interface CommandSpec {
  /** As typed, e.g. "runs list". */
  name: string;
  summary: string;
  /** Placeholders shown after the name in the usage line. */
  takes: string;
  /** How many positional arguments the command takes, checked before it runs. Without it the command checks them itself. */
  arity?: readonly [least: number, most: number];
  examples: readonly (readonly [command: string, what: string])[];
  options: Record<string, OptionSpec>;
  /** Passes unknown options to the command as `extraOptions` instead of rejecting them. */
  takesExtraOptions?: true;
  run(input: CommandInput): Promise<number>;
}

export interface OptionSpec {
  /** The placeholder for its value. A switch has none. */
  value?: string;
  repeat?: boolean;
  /** One letter, e.g. "x" for -x. */
  short?: string;
  about: string;
}

export interface CommandInput {
  options: ParsedOptions;
  positionals: string[];
  /** The arguments after `--`, or null if there was no `--`. */
  rest: string[] | null;
  /** Unknown options in order, for a command with `takesExtraOptions`. */
  extraOptions: readonly (readonly [name: string, value: string | true])[];
  env: Environment;
  cwd: string;
}

export type ParsedOptions = Record<string, string | true | string[]>;

export const commonOptions: Record<string, OptionSpec> = {
  json: { about: "print JSON" },
  quiet: { short: "q", about: "print no progress and no hints to stderr" },
  "no-input": { about: "never prompt" },
  "allow-http": { about: "allow sending the token to another machine unencrypted" },
  help: { short: "h", about: "show this help" },
};

/** Options may come before or after the positionals. Nothing after `--` is an option. */
export function parseOptions(
  argv: readonly string[],
  spec: Pick<CommandSpec, "name" | "options" | "takesExtraOptions">,
) {
  const known = { ...spec.options, ...commonOptions };
  const options: ParsedOptions = {};
  const positionals: string[] = [];
  const extraOptions: [string, string | true][] = [];
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at]!;
    if (word === "--") return { options, positionals, extraOptions, rest: argv.slice(at + 1) };
    if (!word.startsWith("-") || word === "-") {
      positionals.push(word);
      continue;
    }
    const [name, attached] = splitOption(word, known);
    const option = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!option && spec.takesExtraOptions && word.startsWith("--") && name !== "") {
      const next = argv[at + 1];
      const separate = attached === undefined && next !== undefined && !next.startsWith("--");
      extraOptions.push([name, attached ?? (separate ? next : true)]);
      if (separate) at++;
      continue;
    }
    if (!option) throw unknownOption(word, name, spec.name, Object.keys(known));
    if (option.value === undefined) {
      if (attached !== undefined) throw usage(`--${name} takes no value.`, spec.name, `--${name}`);
      options[name] = true;
      continue;
    }
    const value = attached ?? argv[++at];
    if (value === undefined) throw usage(`--${name} needs a value: --${name} ${option.value}.`, spec.name, `--${name}`);
    const before = options[name];
    if (option.repeat) options[name] = Array.isArray(before) ? [...before, value] : [value];
    else if (before !== undefined) throw usage(`--${name} was given twice.`, spec.name, `--${name}`);
    else options[name] = value;
  }
  return { options, positionals, extraOptions, rest: null };
}

/** The positional arguments, counted if the command declares its arity. For those commands `--` only ends the options. */
export function readPositionals(
  { positionals, rest }: { positionals: string[]; rest: readonly string[] | null },
  spec: Pick<CommandSpec, "name" | "takes" | "arity" | "options">,
): string[] {
  if (!spec.arity) return positionals;
  const [least, most] = spec.arity;
  const words = [...positionals, ...(rest ?? [])];
  if (words.length < least) throw usage(`${spec.name} needs ${spec.takes}.`, spec.name, spec.takes);
  if (words.length <= most) return words;
  const extra = words[most]!;
  const option = Object.entries(spec.options).find(([, { value }]) => value !== undefined);
  throw new RequestError({
    code: "DROVER-USE-001",
    field: extra,
    message: `${spec.name} takes ${most === 0 ? "no arguments" : `only ${spec.takes}`}: unexpected argument ${extra}.`,
    next: `${option ? `Did you mean --${option[0]} ${extra}? ` : ""}See \`drover ${spec.name} --help\`.`,
  });
}

/** The value of an option that takes one value. */
export function text(options: ParsedOptions, name: string): string | undefined {
  const value = options[name];
  return typeof value === "string" ? value : undefined;
}

/** A number of seconds, fractions allowed. undefined if the option was not given. */
export function seconds(options: ParsedOptions, name: string): number | undefined {
  const given = text(options, name);
  if (given === undefined) return undefined;
  const time = given.trim() === "" ? Number.NaN : Number(given);
  if (Number.isFinite(time) && time > 0) return time;
  throw new RequestError({
    code: "DROVER-USE-005",
    field: `--${name}`,
    message: `--${name} ${given} is not a positive number of seconds.`,
    next: `Give a time like --${name} 60 or --${name} 0.5.`,
  });
}

/** The page size from --limit, 50 by default. */
export function readLimit(options: ParsedOptions, command: string): number {
  const given = text(options, "limit");
  if (given === undefined) return 50;
  const limit = Number(given);
  if (Number.isInteger(limit) && limit >= 1 && limit <= 1000) return limit;
  throw usage(`--limit ${given} is not a whole number from 1 to 1000.`, command, "--limit");
}

export function list(options: ParsedOptions, name: string): string[] {
  const value = options[name];
  return Array.isArray(value) ? value : [];
}

export function usage(message: string, command: string, field?: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message,
    next: `See \`drover ${command} --help\`.`,
    ...(field ? { field } : {}),
  });
}

function splitOption(word: string, known: Record<string, OptionSpec>): [name: string, attached: string | undefined] {
  const short = /^-([a-z])$/.exec(word)?.[1];
  if (short) return [Object.entries(known).find(([, option]) => option.short === short)?.[0] ?? "", undefined];
  const equals = word.indexOf("=");
  return equals < 0 ? [word.slice(2), undefined] : [word.slice(2, equals), word.slice(equals + 1)];
}

function unknownOption(word: string, name: string, command: string, known: string[]): RequestError {
  const near = word.startsWith("--") ? suggest(name, known) : undefined;
  const shown = word.split("=")[0]!;
  return new RequestError({
    code: "DROVER-USE-007",
    field: shown,
    message: `Unknown option ${shown}.${near ? ` Did you mean --${near}?` : ""}`,
    next: `See \`drover ${command} --help\`.${command === "exec" ? " Put options for the command itself inside the quotes or after `--`." : ""}`,
  });
}
