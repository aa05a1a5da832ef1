import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { loadAgents, loadAgentFiles } from "../define/load-agents.ts";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import { findProfiles } from "../define/profiles.ts";
import { findProject } from "../local.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { describeIgnoredSchedules, isSameDirectory } from "../compose/open-profiles.ts";
import { builtInExecutors } from "../compose/create-executor.ts";
import type { ApiClient, FlatAgent } from "../wire/client.ts";
import type { LocalAgent } from "./local-agents.ts";
import { printHeldAgents } from "./agents-accept.ts";
import { connect, connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import { toJsonLine } from "./json-line.ts";
import { findModelAgentFaults, findModelProfileFaults } from "./model-agent-faults.ts";
import { type CommandInput, type CommandSpec, readText } from "./options.ts";
import { resolveTrust } from "./resolve-trust.ts";
import { findAgentsDirectory, findDefaultAgentsDirectory } from "./agents-directory.ts";
import { findProgramWarning } from "./program-warnings.ts";
import { writeTable } from "./table.ts";

export const agentsList: CommandSpec = {
  name: "agents list",
  summary: "list agents",
  placeholders: "",
  arity: [0, 0],
  examples: [
    ["drover agents list", "all agents by name, with their source"],
    ["drover agents list --tag review", "only agents with this tag"],
  ],
  options: { tag: { placeholder: "TAG", description: "only agents with this tag" } },
  run: listAgents,
};

export const agentsShow: CommandSpec = {
  name: "agents show",
  summary: "show one agent's definition",
  placeholders: "AGENT",
  arity: [1, 1],
  examples: [["drover agents show echo", "its command, parameters and limits"]],
  options: {},
  run: showAgent,
};

export const agentsCheck: CommandSpec = {
  name: "agents check",
  summary: "check agent and profile files for errors",
  placeholders: "[FILE|FOLDER...]",
  arity: [0, Infinity],
  examples: [
    ["drover agents check", "all agents and profiles of this project"],
    ["drover agents check agents/writer.md", "one file; every error with its file, line and cause"],
  ],
  options: {},
  run: checkAgents,
};

async function listAgents(input: CommandInput): Promise<number> {
  const tag = readText(input.options, "tag");
  const source = await findAgentSource(input);
  const all = "localAgents" in source ? source.localAgents : (await source.agents.list()).items;
  const items = tag === undefined ? all : all.filter(({ tags }) => tags?.includes(tag));
  if (input.options["json"]) {
    for (const agent of items) write(1, toJsonLine(agent));
    return 0;
  }
  const rows = items.map((agent) => [
    agent.name,
    agent.type,
    agent.source,
    agent.runner_id === null ? "-" : { id: agent.runner_id },
    agent.description ?? "",
  ]);
  writeTable(["NAME", "TYPE", "SOURCE", "RUNNER", "DESCRIPTION"], rows);
  for (const { name, fault } of items)
    if (fault)
      write(
        2,
        `drover: warning: the file of ${name} has an error, so its previous version is still in use: ${fault}\n`,
      );
  if (!input.options["quiet"]) await printHeldAgents(input);
  return 0;
}

/** Returns the coordinator's client or, without a coordinator, the agents that `drover run` would find. */
async function findAgentSource(input: CommandInput): Promise<ApiClient | { localAgents: LocalAgent[] }> {
  const { client, project } = await connect(input);
  // With DATABASE_URL the agents are in the fleet's database, so a coordinator is required.
  if (client !== null || input.env["DATABASE_URL"]) return client ?? connectOrFail(input);
  const { listLocalAgents } = await import("./local-agents.ts");
  const trusted = await resolveTrust(input, project, { profiles: true, agents: true });
  return { localAgents: await listLocalAgents(input, trusted) };
}

async function showAgent(input: CommandInput): Promise<number> {
  const agent = await findAgent(input, input.positionals[0] ?? "");
  write(1, toJsonLine(agent, input.options["json"] ? 0 : 2));
  return 0;
}

/** Finds an agent of the coordinator, or without one an agent that `drover run` would find. */
export async function findAgent(input: CommandInput, name: string): Promise<FlatAgent | LocalAgent> {
  const source = await findAgentSource(input);
  const agent =
    "localAgents" in source
      ? source.localAgents.find((candidate) => candidate.name === name)
      : await source.agents.get(name);
  if (agent === undefined)
    throw new RequestError({
      code: "DROVER-API-014",
      field: "AGENT",
      message: `Unknown agent: ${name}.`,
      next: "Run `drover agents list` to see the agents.",
    });
  return agent;
}

async function checkAgents(input: CommandInput): Promise<number> {
  const definitions = input.positionals.length === 0 ? await findProjectDefinitions(input) : null;
  const schemas = openSchemaChecker();
  const checks = { ...schemas, checkAgent: findModelAgentFaults };
  const faults: DefinitionFault[] = [...(definitions?.faults ?? [])];
  const names: string[] = [];
  const warnings: string[] = [];
  const skipped: string[] = [];
  const paths =
    definitions?.directories ??
    input.positionals.map((argument) => checkExists(resolve(input.cwd, argument), argument));
  let files = 0;
  for (const path of paths) {
    const loaded = statSync(path, { throwIfNoEntry: false })?.isFile()
      ? await loadAgentFiles([path], checks)
      : await loadAgents(path, checks);
    faults.push(...loaded.faults);
    names.push(...loaded.agents.map(({ agent }) => agent.name));
    const directories = [input.cwd, ...(definitions?.runnerDirectories ?? [])];
    if (definitions?.offeredDirectories.includes(path)) warnings.push(...describeIgnoredSchedules(loaded.agents));
    warnings.push(...loaded.agents.flatMap((agent) => findProgramWarning(agent, directories, input.env) ?? []));
    skipped.push(...loaded.subdirectories.filter((directory) => !paths.includes(directory)));
    files += loaded.files;
  }
  await schemas.stop();
  if (input.options["json"]) write(1, toJsonLine({ agents: names, faults, warnings, files, skipped }));
  else {
    for (const name of names) write(1, `ok ${name}\n`);
    for (const warning of warnings) write(2, `drover: warning: ${warning}\n`);
    for (const fault of faults) write(2, `${describeFault(fault)} [${fault.code}]\n  ${fault.next}\n`);
    if (!input.options["quiet"]) {
      await printHeldAgents(input);
      for (const directory of skipped) write(2, `Skipped ${directory}: subdirectories are not searched for agents.\n`);
      write(2, `Checked ${files} file${files === 1 ? "" : "s"}.\n`);
    }
  }
  return faults.length === 0 ? 0 : 1;
}

/** Finds the agent directories of this project, and the faults of its profiles. */
async function findProjectDefinitions(input: CommandInput): Promise<{
  directories: string[];
  /** Those whose agents only runners offer. */
  offeredDirectories: string[];
  runnerDirectories: string[];
  faults: DefinitionFault[];
}> {
  // Untrusted files are checked too: this runs nothing, and users should be able to check files before they trust them.
  const scope = { profiles: true, agents: true };
  const project = await resolveTrust(input, await findProject(input.env, input.cwd), scope, { mayPrompt: false });
  const host = { builtIn: builtInExecutors, hasCommand: () => true };
  const loaded = findProfiles([project.config.profiles ?? join(input.cwd, "profiles")], host);
  const { profiles } = loaded;
  const faults = [...loaded.faults, ...(await Promise.all(profiles.map(findModelProfileFaults))).flat()];
  const mainDirectories = findAgentsDirectory(input, project) ?? findDefaultAgentsDirectory(input, project) ?? [];
  const profileDirectories = profiles.flatMap(({ agentsDirectory }) => agentsDirectory ?? []);
  const runnerDirectories = [...new Set(profiles.map(({ directory }) => directory))];
  const offeredDirectories = profileDirectories.filter(
    (directory) => ![mainDirectories].flat().some((main) => isSameDirectory(directory, main)),
  );
  const directories = [...new Set([mainDirectories, offeredDirectories].flat())];
  if (directories.length > 0 || faults.length > 0)
    return { directories, offeredDirectories, runnerDirectories, faults };
  throw new RequestError({
    code: "DROVER-USE-001",
    field: "FILE",
    message: `No agents found in ${input.cwd}: it has no agents directory and no profile with an agents_dir.`,
    next: "Pass an agent file or directory, or create a project with `drover init`.",
  });
}

function checkExists(path: string, argument: string): string {
  if (existsSync(path)) return path;
  throw missingPath(argument);
}

function missingPath(path: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field: "FILE",
    message: `${path} does not exist.`,
    next: "Pass the path of an agent file or directory.",
  });
}
