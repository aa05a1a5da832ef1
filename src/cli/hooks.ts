import type { Hook } from "../model/hook.ts";
import { toStatusCell, toTimeCell } from "./cells.ts";
import { connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { type CommandInput, type CommandSpec, readList, readText, usageError } from "./options.ts";
import { type Cell, writeTable } from "./table.ts";

export const hooksList: CommandSpec = {
  name: "hooks list",
  summary: "list hooks; secrets are never shown",
  placeholders: "",
  arity: [0, 0],
  examples: [["drover hooks list", "your hooks, or all hooks for an admin"]],
  options: {},
  async run(input) {
    const { items } = await (await connectOrFail(input)).hooks.list();
    if (input.options["json"]) for (const hook of items) write(1, toJsonLine(hook));
    else writeTable(["NAME", "AGENT", "SCHEME", "STATE", "OWNER", "CREATED"], items.map(toCells));
    return 0;
  },
};

export const hooksShow: CommandSpec = {
  name: "hooks show",
  summary: "show one hook and how it turns a delivery into a run",
  placeholders: "NAME",
  arity: [1, 1],
  examples: [["drover hooks show review", "as JSON"]],
  options: {},
  async run(input) {
    const hook = await (await connectOrFail(input)).hooks.get(input.positionals[0]!);
    write(1, toJsonLine(hook, input.options["json"] ? 0 : 2));
    return 0;
  },
};

export const hooksAdd: CommandSpec = {
  name: "hooks add",
  summary: "add a hook that submits runs of an agent; prints its secret once",
  placeholders: "NAME AGENT",
  arity: [2, 2],
  examples: [
    ["drover hooks add deploys report --param version=/release/version", "takes a parameter from the delivery's body"],
    ["drover hooks add prs review --github --event pull_request --only /action=opened", "for a repository on GitHub"],
  ],
  options: {
    param: {
      placeholder: "NAME=/POINTER",
      repeat: true,
      description: "take a parameter from this JSON pointer into the body",
    },
    set: { placeholder: "NAME=VALUE", repeat: true, description: "set a parameter to a fixed value, as JSON or text" },
    prompt: { placeholder: "T", description: "the prompt; {{/pointer}} inserts a value from the body" },
    github: { description: "deliveries are signed by GitHub (X-Hub-Signature-256)" },
    event: { placeholder: "E", repeat: true, description: "with --github: an event that submits a run (default: all)" },
    only: { placeholder: "/POINTER=VALUE", repeat: true, description: "submit a run only if the body has this value" },
    attended: { description: "send questions of its runs to the inbox" },
  },
  run: addHook,
};

export const hooksRotate: CommandSpec = {
  name: "hooks rotate",
  summary: "replace a hook's secret and print the new one once; the old one stops working immediately",
  placeholders: "NAME",
  arity: [1, 1],
  examples: [["drover hooks rotate prs", "prints the new secret; give it to the sender"]],
  options: {},
  async run(input) {
    const client = await connectOrFail(input);
    const hook = await client.hooks.change(input.positionals[0]!, { rotate_secret: true });
    write(1, input.options["json"] ? toJsonLine(hook) : `${hook.secret}\n`);
    return 0;
  },
};

export const hooksEnable = toggleCommand("enable", true);
export const hooksDisable = toggleCommand("disable", false);

export const hooksRemove: CommandSpec = {
  name: "hooks remove",
  summary: "delete a hook; its deliveries are refused from now on",
  placeholders: "NAME",
  arity: [1, 1],
  examples: [["drover hooks remove prs", "keeps its runs"]],
  options: {},
  async run(input) {
    await (await connectOrFail(input)).hooks.remove(input.positionals[0]!);
    return 0;
  },
};

function toggleCommand(action: "enable" | "disable", enabled: boolean): CommandSpec {
  return {
    name: `hooks ${action}`,
    summary: enabled ? "accept deliveries again" : "refuse deliveries until the hook is enabled again",
    placeholders: "NAME",
    arity: [1, 1],
    examples: [[`drover hooks ${action} prs`, "keeps its secret"]],
    options: {},
    async run(input) {
      const hook = await (await connectOrFail(input)).hooks.change(input.positionals[0]!, { enabled });
      if (input.options["json"]) write(1, toJsonLine(hook));
      return 0;
    },
  };
}

async function addHook(input: CommandInput): Promise<number> {
  const { options, positionals } = input;
  const [name, agent_name] = [positionals[0]!, positionals[1]!];
  const readPairs = (option: string) => readList(options, option).map((argument) => splitPair(argument, option));
  const parameters = Object.fromEntries([
    ...readPairs("param").map(([key, from]) => [key, { from }]),
    ...readPairs("set").map(([key, value]) => [key, { value: parseJsonOrText(value) }]),
  ]);
  const only: Record<string, (string | number | boolean)[]> = {};
  for (const [pointer, value] of readPairs("only")) (only[pointer] ??= []).push(parseScalarOrText(value));
  const events = readList(options, "event");
  if (events.length > 0 && !options["github"]) throw usageError("--event requires --github.", "hooks add", "--event");
  const prompt = readText(options, "prompt");
  const client = await connectOrFail(input);
  const hook = await client.hooks.add({
    name,
    agent_name,
    scheme: options["github"] ? "github" : "drover",
    parameters,
    ...(prompt === undefined ? {} : { prompt }),
    ...(Object.keys(only).length === 0 ? {} : { only }),
    ...(events.length === 0 ? {} : { events }),
    ...(options["attended"] ? { attended: true } : {}),
  });
  write(1, options["json"] ? toJsonLine(hook) : `${hook.secret}\n`);
  if (!options["quiet"])
    write(
      2,
      `Send deliveries to ${client.url}/hooks/${name}, or to the same path of a public URL. The secret is not shown again.\n`,
    );
  return 0;
}

function splitPair(argument: string, option: string): [string, string] {
  const equals = argument.indexOf("=");
  if (equals > 0) return [argument.slice(0, equals), argument.slice(equals + 1)];
  throw usageError(`--${option} ${argument} has no "=" between the name and the value.`, "hooks add", `--${option}`);
}

function parseJsonOrText(argument: string): unknown {
  try {
    return JSON.parse(argument);
  } catch (error) {
    if (error instanceof SyntaxError) return argument;
    throw error;
  }
}

function parseScalarOrText(argument: string): string | number | boolean {
  const value = parseJsonOrText(argument);
  return typeof value === "number" || typeof value === "boolean" || typeof value === "string" ? value : argument;
}

function toCells(hook: Hook): Cell[] {
  const { name, agent_name, scheme, enabled, created_by, created_at } = hook;
  return [
    name,
    agent_name,
    scheme,
    toStatusCell(enabled ? "enabled" : "disabled"),
    created_by,
    toTimeCell(created_at, new Date()),
  ];
}
