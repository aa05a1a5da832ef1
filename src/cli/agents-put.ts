import { resolve } from "node:path";
import { type AgentChecks, checkAgentEntry } from "../define/agent-entry.ts";
import { parseAgentText } from "../define/agent-file.ts";
import { isAgentFile, loadAgentFiles } from "../define/load-agents.ts";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import { parseYaml } from "../define/structured-text.ts";
import type { Agent } from "../model/agent.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { suggest } from "../model/suggest.ts";
import { connectOrFail } from "./connect.ts";
import { isTerminal, write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { findModelAgentFaults } from "./model-agent-faults.ts";
import { type CommandInput, type CommandSpec, readText, usageError } from "./options.ts";
import { findDroverCommand } from "./drover-command.ts";

const formats = ["md", "json", "yaml"] as const;
type Format = (typeof formats)[number];

export const agentsPut: CommandSpec = {
  name: "agents put",
  summary: "create or replace agents of the coordinator from a file",
  placeholders: "FILE|-",
  arity: [1, 1],
  examples: [
    ["drover agents put agents/report.md", "prints every error of the file, like `agents check`"],
    ["jq '.timeout_seconds = 60' report.json | drover agents put -", "from stdin"],
  ],
  options: {
    format: {
      placeholder: "FORMAT",
      choices: formats,
      description: `format of stdin: ${formats.join(", ")} (default: detected from the text)`,
    },
  },
  run: putAgents,
};

export const agentsDelete: CommandSpec = {
  name: "agents delete",
  summary: "delete agents that were created with `agents put` or the API; their runs stay on the record",
  placeholders: "AGENT...",
  arity: [1, Infinity],
  examples: [["drover agents delete report", "runs that have been submitted still finish"]],
  options: {},
  run: deleteAgents,
};

interface CheckedAgents {
  agents: Agent[];
  faults: DefinitionFault[];
}

async function putAgents(input: CommandInput): Promise<number> {
  const { options } = input;
  const { agents, faults } = await checkInput(input);
  if (faults.length > 0) {
    if (options["json"]) write(1, toJsonLine({ faults }));
    else for (const fault of faults) write(2, `${describeFault(fault)} [${fault.code}]\n  ${fault.next}\n`);
    return 1;
  }
  const client = await connectOrFail(input);
  const stored = new Set(
    (await client.agents.list()).items.flatMap(({ source, name }) => (source === "api" ? name : [])),
  );
  for (const agent of agents) {
    const result = stored.has(agent.name) ? "updated" : "created";
    const savedAgent = await client.agents.put(agent.name, agent);
    write(
      1,
      options["json"] ? toJsonLine({ name: agent.name, result, agent: savedAgent }) : `${result} ${agent.name}\n`,
    );
  }
  if (!options["quiet"] && !options["json"] && agents[0])
    write(2, `See its parameters: ${findDroverCommand()} run ${agents[0].name} --help\n`);
  return 0;
}

async function checkInput({ positionals, options, cwd }: CommandInput): Promise<CheckedAgents> {
  const [file = ""] = positionals;
  const format = readFormat(options);
  const schemas = openSchemaChecker();
  const checks = { ...schemas, checkAgent: findModelAgentFaults };
  try {
    if (file === "-") return await checkStdin(cwd, format, checks);
    if (format !== null)
      throw usageError(
        "--format is only for stdin: the format of a file follows from its name.",
        "agents put",
        "--format",
      );
    if (!isAgentFile(file))
      throw usageError(
        `${file} is not an agent file: its name must end in .md, .json, .yaml or .yml.`,
        "agents put",
        "FILE",
      );
    const { agents, faults } = await loadAgentFiles([resolve(cwd, file)], checks);
    return { agents: agents.map(({ agent }) => agent), faults };
  } finally {
    await schemas.stop();
  }
}

async function checkStdin(cwd: string, format: Format | null, checks: AgentChecks): Promise<CheckedAgents> {
  if (isTerminal(0)) throw usageError("Pipe an agent definition to stdin, or pass a file.", "agents put", "FILE");
  const chunks: Buffer[] = [];
  for await (const chunk of process.stdin as AsyncIterable<Buffer>) chunks.push(chunk);
  const content = Buffer.concat(chunks)
    .toString("utf8")
    .replace(/^\uFEFF/, "");
  const file = `stdin.${format ?? detectFormat(content)}`;
  const definition = parseAgentText(file, content);
  if ("ok" in definition) return { agents: [], faults: definition.faults };
  // Relative paths in the definition are relative to the current directory.
  const { agent, faults } = await checkAgentEntry(resolve(cwd, file), definition, checks);
  return agent ? { agents: [agent], faults: [] } : { agents: [], faults };
}

function readFormat(options: CommandInput["options"]): Format | null {
  const value = readText(options, "format");
  const format = formats.find((known) => known === value);
  if (value !== undefined && format === undefined)
    throw usageError(`--format ${value} is not one of ${formats.join(", ")}.`, "agents put", "--format");
  return format ?? null;
}

const frontMatter = /^\s*---[ \t]*\r?\n(?:[\s\S]*?\r?\n)?---[ \t]*(?:\r?\n|$)/;

/** Detects the format. A text is Markdown if it has front matter, or if it is not a YAML mapping. */
function detectFormat(content: string): Format {
  if (content.trimStart().startsWith("{")) return "json";
  if (frontMatter.test(content)) return "md";
  const parsed = parseYaml(content);
  return parsed.ok && typeof parsed.value === "object" && parsed.value !== null ? "yaml" : "md";
}

async function deleteAgents(input: CommandInput): Promise<number> {
  const { positionals, options } = input;
  const client = await connectOrFail(input);
  const { items } = await client.agents.list();
  // Checks all names before it deletes the first agent, so that a wrong name deletes nothing.
  for (const name of positionals) checkDeletable(name, items);
  for (const name of positionals) {
    await client.agents.remove(name);
    write(1, options["json"] ? toJsonLine({ name, deleted: true }) : `deleted ${name}\n`);
  }
  return 0;
}

function checkDeletable(
  name: string,
  agents: readonly { name: string; source: "file" | "api" | "runner"; runner_id: string | null }[],
): void {
  const matches = agents.filter((agent) => agent.name === name);
  if (matches.some(({ source }) => source === "api")) return;
  const [match] = matches;
  const suggestion = match ? undefined : suggest(name, new Set(agents.map((agent) => agent.name)));
  throw new RequestError({
    code: "DROVER-USE-008",
    field: "AGENT",
    message: match
      ? `${name} cannot be deleted here: ${match.source === "file" ? "a file of the coordinator" : `the runner ${match.runner_id}`} defines it.`
      : `Unknown agent: ${name}.${suggestion ? ` Did you mean ${suggestion}?` : ""}`,
    next: match
      ? match.source === "file"
        ? "Remove its file from the agents directory."
        : "Remove it from the runner's profile, or stop the runner."
      : "Run `drover agents list` to see the agents.",
  });
}
