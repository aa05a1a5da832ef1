import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { loadAgentFile, loadAgents } from "../define/agents-folder.ts";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { connectOrFail } from "./connect.ts";
import { write } from "./io.ts";
import type { CommandInput, CommandSpec } from "./options.ts";
import { writeTable } from "./table.ts";

export const agentsList: CommandSpec = {
  name: "agents list",
  summary: "what can be run",
  takes: "",
  words: [0, 0],
  examples: [["drover agents list", "by name, with where each comes from"]],
  options: {},
  run: listAgents,
};

export const agentsShow: CommandSpec = {
  name: "agents show",
  summary: "one agent's definition",
  takes: "AGENT",
  words: [1, 1],
  examples: [["drover agents show echo", "its command, parameters and limits"]],
  options: {},
  run: showAgent,
};

export const agentsCheck: CommandSpec = {
  name: "agents check",
  summary: "are these definitions sound?",
  takes: "FILE|FOLDER...",
  words: [1, Infinity],
  examples: [["drover agents check agents/", "every fault with its file, line and cause"]],
  options: {},
  run: checkAgents,
};

async function listAgents(input: CommandInput): Promise<number> {
  const { items } = await (await connectOrFail(input)).agents.list();
  if (input.options["json"]) {
    for (const agent of items) write(1, `${JSON.stringify(agent)}\n`);
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
  return 0;
}

async function showAgent(input: CommandInput): Promise<number> {
  const agent = await (await connectOrFail(input)).agents.get(input.positionals[0]!);
  write(1, `${JSON.stringify(agent, null, input.options["json"] ? 0 : 2)}\n`);
  return 0;
}

async function checkAgents(input: CommandInput): Promise<number> {
  const schemas = openSchemaChecker();
  const faults: DefinitionFault[] = [];
  const names: string[] = [];
  for (const given of input.positionals) {
    const path = resolve(input.cwd, given);
    if (!existsSync(path)) throw missing(given);
    if (statSync(path).isDirectory()) {
      const loaded = await loadAgents(path, schemas);
      faults.push(...loaded.faults);
      names.push(...loaded.agents.map(({ agent }) => agent.name));
    } else {
      const parsed = await loadAgentFile(path, schemas);
      if (parsed.ok) names.push(parsed.agent.name);
      else faults.push(...parsed.faults);
    }
  }
  await schemas.stop();
  if (input.options["json"]) write(1, `${JSON.stringify({ agents: names, faults })}\n`);
  else {
    for (const name of names) write(1, `ok ${name}\n`);
    for (const fault of faults) write(2, `${describeFault(fault)} [${fault.code}]\n  ${fault.next}\n`);
  }
  return faults.length === 0 ? 0 : 1;
}

function missing(path: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    field: "FILE",
    message: `There is no ${path}.`,
    next: "Name an agent file or a folder of them.",
  });
}
