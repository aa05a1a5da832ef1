import { commands, defaultCommands } from "../commands.ts";
import { type CommandSpec, commonOptions, type OptionSpec } from "../options.ts";

export interface Candidate {
  value: string;
  description?: string;
}

/** The kinds of objects whose names or ids are completed. */
export type ValueKind = "agents" | "runs" | "sessions" | "schedules" | "runners" | "tokens" | "hooks" | "webhooks";

/** Reads values from the coordinator or the record. Returns none if that fails or takes too long. */
export interface ValueReader {
  list(kind: ValueKind): Promise<Candidate[]>;
  parameters(agent: string): Promise<Candidate[]>;
  parameterValues(agent: string, parameter: string): Promise<Candidate[]>;
}

/** Tells the script to complete file names. */
export const fileNames: Candidate = { value: ":files" };

/** Finds the candidates for the last of the words, which follow `drover` on the command line. */
export async function findCandidates(words: readonly string[], reader: ValueReader): Promise<Candidate[]> {
  const current = words.at(-1) ?? "";
  const previous = words.slice(0, -1);
  const all = await (previous[0] === "help"
    ? listCommands(previous.slice(1), true)
    : findAll(previous, current, reader));
  return all.filter(({ value }) => value === fileNames.value || value.startsWith(current));
}

async function findAll(previous: readonly string[], current: string, reader: ValueReader): Promise<Candidate[]> {
  const [first] = previous;
  if (first === undefined) return [...listCommands([], false), ...globalOptions];
  const subcommands = previous.length === 1 ? listCommands(previous, true) : [];
  const [name, wordCount] = resolveCommand(previous);
  if (name === null) return subcommands;
  const spec = await commands[name]![1]();
  const args = previous.slice(wordCount);
  return [...subcommands, ...(await findInCommand(spec, args, current, reader))];
}

const globalOptions: Candidate[] = [
  { value: "--help", description: "list the commands" },
  { value: "--version", description: "print the version" },
];

/** The command that the words begin with, and how many of them belong to its name. */
function resolveCommand(words: readonly string[]): [name: string, wordCount: number] | [null, 0] {
  for (const wordCount of [2, 1]) {
    const name = words.slice(0, wordCount).join(" ");
    if (words.length >= wordCount && Object.hasOwn(commands, name)) return [name, wordCount];
  }
  const defaultCommand = defaultCommands[words[0] ?? ""];
  return defaultCommand && (words[1] === undefined || words[1].startsWith("-")) ? [defaultCommand, 1] : [null, 0];
}

/** The next words of the commands that begin with these words. */
function listCommands(words: readonly string[], isNested: boolean): Candidate[] {
  if (words.length > 1) return [];
  const [first] = words;
  const candidates = new Map<string, Candidate>();
  for (const [name, [description]] of Object.entries(commands)) {
    const [word = "", second] = name.split(" ");
    if (first === undefined) {
      const isGroup = second !== undefined;
      if (!candidates.has(word))
        candidates.set(word, { value: word, description: isGroup ? describeGroup(word) : description });
    } else if (word === first && second !== undefined) candidates.set(second, { value: second, description });
  }
  if (first === undefined && !isNested) candidates.set("help", { value: "help", description: "explain a command" });
  return [...candidates.values()];
}

function describeGroup(group: string): string {
  const names = Object.keys(commands).filter((name) => name.startsWith(`${group} `));
  return names.map((name) => name.slice(group.length + 1)).join(", ");
}

async function findInCommand(
  spec: CommandSpec,
  args: readonly string[],
  current: string,
  reader: ValueReader,
): Promise<Candidate[]> {
  // The words after `--` are the user's own command line.
  if (args.includes("--")) return [fileNames];
  const options = { ...spec.options, ...commonOptions };
  const { positionals, usedOptions, pendingOption } = scanArguments(args, options);
  const agent = spec.takesExtraOptions && /^AGENT\b/.test(spec.placeholders) ? positionals[0] : undefined;
  const findValues = (name: string, typed: string): Promise<Candidate[]> =>
    findOptionValues(name, options[name], typed, agent, reader);
  if (pendingOption !== null) return findValues(pendingOption, current);
  const attached = /^(--([^=]+)=)(.*)/.exec(current);
  if (attached) {
    const values = await findValues(attached[2]!, attached[3]!);
    return values.map(({ value, ...rest }) => ({ value: `${attached[1]}${value}`, ...rest }));
  }
  if (!current.startsWith("-")) return findPositionals(spec, positionals.length, reader);
  const unusedOptions = Object.entries(options)
    .filter(([name, option]) => option.repeat || !usedOptions.has(name))
    .map(([name, option]) => ({ value: `--${name}`, description: option.description }));
  const parameters = agent === undefined ? [] : await reader.parameters(agent);
  const unusedParameters = parameters.filter(({ value }) => !usedOptions.has(value));
  return [...unusedParameters.map(({ value, ...rest }) => ({ value: `--${value}`, ...rest })), ...unusedOptions];
}

/** Reads the arguments before the cursor. `pendingOption` is the option whose value comes next. */
function scanArguments(args: readonly string[], options: Readonly<Record<string, OptionSpec>>) {
  const positionals: string[] = [];
  const usedOptions = new Set<string>();
  let pendingOption: string | null = null;
  for (const argument of args) {
    if (pendingOption !== null && !argument.startsWith("--")) {
      pendingOption = null;
      continue;
    }
    pendingOption = null;
    if (!argument.startsWith("-") || argument === "-") {
      positionals.push(argument);
      continue;
    }
    const short = /^-([a-z])$/.exec(argument)?.[1];
    const name = short
      ? (Object.entries(options).find(([, option]) => option.short === short)?.[0] ?? "")
      : argument.slice(2).split("=")[0]!;
    usedOptions.add(name);
    const option = Object.hasOwn(options, name) ? options[name] : undefined;
    const isSwitch = option !== undefined && option.placeholder === undefined;
    if (!isSwitch && !argument.includes("=")) pendingOption = name;
  }
  return { positionals, usedOptions, pendingOption };
}

async function findOptionValues(
  name: string,
  option: OptionSpec | undefined,
  typed: string,
  agent: string | undefined,
  reader: ValueReader,
): Promise<Candidate[]> {
  if (option === undefined) return agent === undefined ? [] : reader.parameterValues(agent, name);
  if (option.choices) return listChoices(option.choices, option.severalChoices ? typed : "");
  if (/^(?:DIR|FILE|P)$/.test(option.placeholder ?? "")) return [fileNames];
  const kind = optionKinds[name];
  return kind === undefined ? [] : reader.list(kind);
}

/** Completes the choice after the last comma of a list. Leaves out choices that the list already has. */
function listChoices(choices: readonly string[], typed: string): Candidate[] {
  const chosenValues = typed.split(",").slice(0, -1);
  const start = chosenValues.map((choice) => `${choice},`).join("");
  return choices.filter((choice) => !chosenValues.includes(choice)).map((choice) => ({ value: `${start}${choice}` }));
}

const optionKinds: Record<string, ValueKind | undefined> = {
  agent: "agents",
  session: "sessions",
  "session-id": "sessions",
  "parent-run-id": "runs",
  "run-id": "runs",
};

/** The values of placeholders that accept only a few. */
const placeholderChoices: Record<string, readonly string[] | undefined> = { SHELL: ["bash", "zsh", "fish"] };

const placeholderKinds: Record<string, ValueKind | undefined> = {
  AGENT: "agents",
  RUN: "runs",
  SESSION: "sessions",
  SCHEDULE: "schedules",
  RUNNER: "runners",
  TOKEN: "tokens",
};

async function findPositionals(spec: CommandSpec, index: number, reader: ValueReader): Promise<Candidate[]> {
  // `exec` takes a command line, which has no placeholders.
  if (spec.name === "exec") return [fileNames];
  const placeholders = spec.placeholders
    .replaceAll(/\[--.*\]|--\S+ \S+/g, "")
    .split(" ")
    .filter((word) => word !== "");
  const last = placeholders.at(-1);
  const placeholder = placeholders[index] ?? (last?.includes("...") ? last : undefined);
  if (placeholder === undefined) return [];
  const word = placeholder.replaceAll(/[[\].]/g, "");
  if (/\b(?:FILE|FOLDER|DIR|SPEC|WORKSPACE)\b/.test(word)) return [fileNames];
  if (word === "PATH") return spec.name === "runs files" ? [] : [fileNames];
  const group = spec.name.split(" ")[0];
  if (word === "NAME" && (group === "hooks" || group === "webhooks")) return reader.list(group);
  const choices = placeholderChoices[word];
  if (choices) return choices.map((value) => ({ value }));
  const kind = placeholderKinds[word];
  return kind === undefined ? [] : reader.list(kind);
}
