import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { loadAgents, loadAgentFiles } from "../define/load-agents.ts";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import { findProfiles } from "../define/profiles.ts";
import { findLocal } from "../local.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { builtInExecutors } from "../compose/create-executor.ts";
import type { ApiClient } from "../wire/client.ts";
import type { LocalAgent } from "./local-agents.ts";
import { printHeldAgents } from "./agents-accept.ts";
import { connect, connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import { jsonLine } from "./json-line.ts";
import { modelAgentFaults, modelProfileFaults } from "./model-agent-faults.ts";
import { type CommandInput, type CommandSpec, text } from "./options.ts";
import { resolveTrust } from "./resolve-trust.ts";
import { findAgentsDirectory, defaultAgentsDirectory } from "./agents-directory.ts";
import { writeTable } from "./table.ts";

export const agentsList: CommandSpec = {
  name: "agents list",
  summary: "what can be run",
  takes: "",
  arity: [0, 0],
  examples: [
    ["drover agents list", "by name, with where each comes from"],
    ["drover agents list --tag review", "those with this among their tags"],
  ],
  options: { tag: { value: "TAG", about: "only agents with this tag" } },
  run: listAgents,
};

export const agentsShow: CommandSpec = {
  name: "agents show",
  summary: "one agent's definition",
  takes: "AGENT",
  arity: [1, 1],
  examples: [["drover agents show echo", "its command, parameters and limits"]],
  options: {},
  run: showAgent,
};

export const agentsCheck: CommandSpec = {
  name: "agents check",
  summary: "are these definitions sound?",
  takes: "[FILE|FOLDER...]",
  arity: [0, Infinity],
  examples: [
    ["drover agents check", "all of this project: its agents folder, and the profiles with theirs"],
    ["drover agents check agents/writer.md", "every fault with its file, line and cause"],
  ],
  options: {},
  run: checkAgents,
};

async function listAgents(input: CommandInput): Promise<number> {
  const tag = text(input.options, "tag");
  const client = await findClient(input);
  const all = "here" in client ? client.here : (await client.agents.list()).items;
  const items = tag === undefined ? all : all.filter(({ tags }) => tags?.includes(tag));
  if (input.options["json"]) {
    for (const agent of items) write(1, jsonLine(agent));
    return 0;
  }
  const rows = items.map((agent) => [
    agent.name,
    agent.type,
    agent.source,
    agent.runner_id ?? "-",
    agent.description ?? "",
  ]);
  writeTable(["NAME", "TYPE", "SOURCE", "RUNNER", "DESCRIPTION"], rows);
  for (const { name, fault } of items)
    if (fault) write(2, `drover: warning: ${name} is offered as it was before its file was changed: ${fault}\n`);
  if (!input.options["quiet"]) await printHeldAgents(input);
  return 0;
}

/** The coordinator, or where there is none the agents that a `drover run` finds here. */
async function findClient(input: CommandInput): Promise<ApiClient | { here: LocalAgent[] }> {
  const { client, local } = await connect(input);
  // a fleet's agents are in its database
  if (client !== null || input.env["DATABASE_URL"]) return client ?? connectOrFail(input);
  const { listLocalAgents } = await import("./local-agents.ts");
  const settled = await resolveTrust(input, local, { profiles: true, agents: true });
  return { here: await listLocalAgents(input, settled) };
}

async function showAgent(input: CommandInput): Promise<number> {
  const [name = ""] = input.positionals;
  const client = await findClient(input);
  const agent = "here" in client ? client.here.find((one) => one.name === name) : await client.agents.get(name);
  if (agent === undefined)
    throw new RequestError({
      code: "DROVER-API-014",
      field: "AGENT",
      message: `There is no agent ${name} here.`,
      next: "See `drover agents list`.",
    });
  write(1, jsonLine(agent, input.options["json"] ? 0 : 2));
  return 0;
}

async function checkAgents(input: CommandInput): Promise<number> {
  const project = input.positionals.length === 0 ? await findProject(input) : null;
  const schemas = openSchemaChecker();
  const checks = { ...schemas, checkAgent: modelAgentFaults };
  const faults: DefinitionFault[] = [...(project?.faults ?? [])];
  const names: string[] = [];
  const skipped: string[] = [];
  const paths = project?.folders ?? input.positionals.map((given) => existing(resolve(input.cwd, given), given));
  let files = 0;
  for (const path of paths) {
    const loaded = statSync(path, { throwIfNoEntry: false })?.isFile()
      ? await loadAgentFiles([path], checks)
      : await loadAgents(path, checks);
    faults.push(...loaded.faults);
    names.push(...loaded.agents.map(({ agent }) => agent.name));
    skipped.push(...loaded.subdirectories.filter((folder) => !paths.includes(folder)));
    files += loaded.files;
  }
  await schemas.stop();
  if (input.options["json"]) write(1, jsonLine({ agents: names, faults, files, skipped }));
  else {
    for (const name of names) write(1, `ok ${name}\n`);
    for (const fault of faults) write(2, `${describeFault(fault)} [${fault.code}]\n  ${fault.next}\n`);
    if (!input.options["quiet"]) {
      await printHeldAgents(input);
      for (const folder of skipped) write(2, `Not read: ${folder} (only files directly in a folder are agents)\n`);
      write(2, `Checked ${files} file${files === 1 ? "" : "s"}.\n`);
    }
  }
  return faults.length === 0 ? 0 : 1;
}

/** The folders that agents of this project lie in, and what is wrong with its profiles. */
async function findProject(input: CommandInput): Promise<{ folders: string[]; faults: DefinitionFault[] }> {
  // to look at what is not trusted, before it is, is what a careful person does: nothing of it is run
  const looks = { profiles: true, agents: true };
  const local = await resolveTrust(input, await findLocal(input.env, input.cwd), looks, { asks: false });
  const host = { builtIn: builtInExecutors, hasCommand: () => true };
  const found = findProfiles([local.config.profiles ?? join(input.cwd, "profiles")], host);
  const { profiles } = found;
  const faults = [...found.faults, ...(await Promise.all(profiles.map(modelProfileFaults))).flat()];
  const brought = profiles.flatMap(({ agentsDirectory }) => agentsDirectory ?? []);
  const folders = [
    ...new Set([findAgentsDirectory(input, local) ?? defaultAgentsDirectory(input, local) ?? [], brought].flat()),
  ];
  if (folders.length > 0 || faults.length > 0) return { folders, faults };
  throw new RequestError({
    code: "DROVER-USE-001",
    field: "FILE",
    message: `There are no agents in ${input.cwd}: neither a folder agents nor a profile with an agents_dir.`,
    next: "Name an agent file or a folder of them, or begin with `drover init`.",
  });
}

function existing(path: string, given: string): string {
  if (existsSync(path)) return path;
  throw missing(given);
}

function missing(path: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field: "FILE",
    message: `There is no ${path}.`,
    next: "Name an agent file or a folder of them.",
  });
}
