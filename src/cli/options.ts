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
  arity?: readonly [min: number, max: number];
  examples: readonly (readonly [command: string, what: string])[];
  options: Record<string, OptionSpec>;
  /** Passes unknown options to the command as `extraOptions` instead of rejecting them. */
  takesExtraOptions?: true;
  run(input: CommandInput): Promise<number>;
  /** Prints more specific help if `--help` follows positional arguments, such as the name of an agent. */
  showHelpFor?(input: CommandInput): Promise<number>;
}

export interface OptionSpec {
  /** The placeholder for its value. A switch has none. */
  value?: string;
  repeat?: boolean;
  /** The values it accepts, for shell completion. Without them any value may be valid. */
  choices?: readonly string[];
  /** Accepts several choices separated by commas. */
  severalChoices?: true;
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
    if (option.value === undefined) {
      if (attached !== undefined) throw usage(`--${name} takes no value.`, spec.name, `--${name}`);
      options[name] = true;
      continue;
    }
    const value = attached ?? argv[++index];
    if (value === undefined) throw usage(`--${name} needs a value: --${name} ${option.value}.`, spec.name, `--${name}`);
    const previous = options[name];
    if (option.repeat) options[name] = Array.isArray(previous) ? [...previous, value] : [value];
    else if (previous !== undefined) throw usage(`--${name} was passed twice.`, spec.name, `--${name}`);
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
  const [min, max] = spec.arity;
  const args = [...positionals, ...(rest ?? [])];
  if (args.length < min) throw usage(`${spec.name} needs ${spec.takes}.`, spec.name, spec.takes);
  if (args.length <= max) return args;
  const unexpected = args[max]!;
  const option = Object.entries(spec.options).find(([, { value }]) => value !== undefined);
  throw new RequestError({
    code: "DROVER-USE-001",
    field: unexpected,
    message: `${spec.name} takes ${max === 0 ? "no arguments" : `only ${spec.takes}`}: unexpected argument ${unexpected}.`,
    next: `${option ? `Did you mean --${option[0]} ${unexpected}? ` : ""}See \`drover ${spec.name} --help\`.`,
  });
}

/** The value of an option that takes one value. */
export function text(options: ParsedOptions, name: string): string | undefined {
  const value = options[name];
  return typeof value === "string" ? value : undefined;
}

/** A number of seconds, fractions allowed. Returns undefined if the option was not passed. */
export function seconds(options: ParsedOptions, name: string): number | undefined {
  const value = text(options, name);
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

/** The page size from --limit, 50 by default. */
export function readLimit(options: ParsedOptions, command: string): number {
  const value = text(options, "limit");
  if (value === undefined) return 50;
  const limit = Number(value);
  if (Number.isInteger(limit) && limit >= 1 && limit <= maxLimit) return limit;
  throw usage(`--limit ${value} is not a whole number from 1 to ${maxLimit}.`, command, "--limit");
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
