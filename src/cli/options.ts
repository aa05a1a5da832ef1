import { RequestError } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";
import type { Environment } from "../model/environment.ts";

/** One command: its arguments and options, its help text and its implementation. */
export interface CommandSpec {
  /** The words that the user types, such as "runs list". */
  name: string;
  summary: string;
  /** The placeholders of the arguments, shown after the name in the usage line. */
  placeholders: string;
  /** How many positional arguments the command takes. They are counted before it runs. Without an arity, the command counts them itself. */
  arity?: readonly [min: number, max: number];
  examples: readonly (readonly [command: string, description: string])[];
  options: Record<string, OptionSpec>;
  /** Passes unknown options to the command as `extraOptions` instead of rejecting them. */
  takesExtraOptions?: true;
  run(input: CommandInput): Promise<number>;
  /** Prints more specific help if `--help` follows positional arguments, such as the name of an agent. */
  showHelpFor?(input: CommandInput): Promise<number>;
}

export interface OptionSpec {
  /** Stands for the value in the help, such as FILE. A switch takes no value and has no placeholder. */
  placeholder?: string;
  repeat?: boolean;
  /** The accepted values, for shell completion. Without them, any value may be valid. */
  choices?: readonly string[];
  /** Accepts several choices separated by commas. */
  severalChoices?: true;
  /** One letter, such as "x" for -x. */
  short?: string;
  description: string;
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
  json: { description: "print JSON" },
  quiet: { short: "q", description: "print no progress and no hints to stderr" },
  "no-input": { description: "never prompt" },
  "allow-http": { description: "allow sending the token to another machine unencrypted" },
  help: { short: "h", description: "show this help" },
};

/** Options may come before or after the positionals. Nothing after `--` is an option. */
export function parseOptions(
  argv: readonly string[],
  spec: Pick<CommandSpec, "name" | "options" | "takesExtraOptions">,
) {
  const knownOptions = { ...spec.options, ...commonOptions };
  const options: ParsedOptions = {};
  const positionals: string[] = [];
  const extraOptions: [string, string | true][] = [];
  for (let index = 0; index < argv.length; index++) {
    const argument = argv[index]!;
    if (argument === "--") return { options, positionals, extraOptions, rest: argv.slice(index + 1) };
    if (!argument.startsWith("-") || argument === "-") {
      positionals.push(argument);
      continue;
    }
    const [name, attached] = splitOption(argument, knownOptions);
    const option = Object.hasOwn(knownOptions, name) ? knownOptions[name] : undefined;
    if (!option && spec.takesExtraOptions && argument.startsWith("--") && name !== "") {
      const next = argv[index + 1];
      const isSeparate = attached === undefined && next !== undefined && !next.startsWith("--");
      extraOptions.push([name, attached ?? (isSeparate ? next : true)]);
      if (isSeparate) index++;
      continue;
    }
    if (!option) throw unknownOption(argument, name, spec.name, Object.keys(knownOptions));
    if (option.placeholder === undefined) {
      if (attached !== undefined) throw usageError(`--${name} takes no value.`, spec.name, `--${name}`);
      options[name] = true;
      continue;
    }
    const value = attached ?? argv[++index];
    if (value === undefined)
      throw usageError(`--${name} needs a value: --${name} ${option.placeholder}.`, spec.name, `--${name}`);
    const previous = options[name];
    if (option.repeat) options[name] = Array.isArray(previous) ? [...previous, value] : [value];
    else if (previous !== undefined) throw usageError(`--${name} was passed twice.`, spec.name, `--${name}`);
    else options[name] = value;
  }
  return { options, positionals, extraOptions, rest: null };
}

/** Returns the positional arguments. If the command declares its arity, checks their number and includes the arguments after `--`. */
export function readPositionals(
  { positionals, rest }: { positionals: string[]; rest: readonly string[] | null },
  spec: Pick<CommandSpec, "name" | "placeholders" | "arity" | "options">,
): string[] {
  if (!spec.arity) return positionals;
  const [min, max] = spec.arity;
  const args = [...positionals, ...(rest ?? [])];
  if (args.length < min) throw usageError(`${spec.name} needs ${spec.placeholders}.`, spec.name, spec.placeholders);
  if (args.length <= max) return args;
  const unexpected = args[max]!;
  const option = Object.entries(spec.options).find(([, { placeholder }]) => placeholder !== undefined);
  throw new RequestError({
    code: "DROVER-USE-001",
    field: unexpected,
    message: `${spec.name} takes ${max === 0 ? "no arguments" : `only ${spec.placeholders}`}: unexpected argument ${unexpected}.`,
    next: `${option ? `Did you mean --${option[0]} ${unexpected}? ` : ""}See \`drover ${spec.name} --help\`.`,
  });
}

/** Reads an option that takes one value. Returns undefined if it was not passed. */
export function readText(options: ParsedOptions, name: string): string | undefined {
  const value = options[name];
  return typeof value === "string" ? value : undefined;
}

/** Reads a number of seconds, which may be a fraction. Returns undefined if the option was not passed. */
export function readSeconds(options: ParsedOptions, name: string): number | undefined {
  const value = readText(options, name);
  if (value === undefined) return undefined;
  const time = value.trim() === "" ? Number.NaN : Number(value);
  if (Number.isFinite(time) && time > 0) return time;
  throw new RequestError({
    code: "DROVER-USE-005",
    field: `--${name}`,
    message: `--${name} ${value} is not a positive number of seconds.`,
    next: `Use a time like --${name} 60 or --${name} 0.5.`,
  });
}

export const maxLimit = 1000;

/** Reads the page size from --limit, 50 by default. */
export function readLimit(options: ParsedOptions, command: string): number {
  const value = readText(options, "limit");
  if (value === undefined) return 50;
  const limit = Number(value);
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxLimit) return limit;
  throw usageError(`--limit ${value} is not a whole number from 1 to ${maxLimit}.`, command, "--limit");
}

/** Reads an option that may be repeated. */
export function readList(options: ParsedOptions, name: string): string[] {
  const value = options[name];
  return Array.isArray(value) ? value : [];
}

export function usageError(message: string, command: string, field?: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message,
    next: `See \`drover ${command} --help\`.`,
    ...(field ? { field } : {}),
  });
}

function splitOption(
  argument: string,
  knownOptions: Record<string, OptionSpec>,
): [name: string, attached: string | undefined] {
  const short = /^-([a-z])$/.exec(argument)?.[1];
  if (short) return [Object.entries(knownOptions).find(([, option]) => option.short === short)?.[0] ?? "", undefined];
  const equals = argument.indexOf("=");
  return equals < 0 ? [argument.slice(2), undefined] : [argument.slice(2, equals), argument.slice(equals + 1)];
}

function unknownOption(argument: string, name: string, command: string, knownOptions: string[]): RequestError {
  const suggestion = argument.startsWith("--") ? suggest(name, knownOptions) : undefined;
  const optionName = argument.split("=")[0]!;
  return new RequestError({
    code: "DROVER-USE-007",
    field: optionName,
    message: `Unknown option ${optionName}.${suggestion ? ` Did you mean --${suggestion}?` : ""}`,
    next: `See \`drover ${command} --help\`.${command === "exec" ? " Put options for the command itself inside the quotes or after `--`." : ""}`,
  });
}
