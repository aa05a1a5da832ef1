import { isAbsolute, resolve } from "node:path";
import { checkAgent } from "../define/agent-file.ts";
import { loadAgentFiles } from "../define/load-agents.ts";
import { checkSchemas } from "../define/check-schemas.ts";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import type { Agent } from "../model/agent.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { expandAgent, expandText, variablesIn } from "../model/expand-agent.ts";
import { suggest } from "../model/suggest.ts";
import type { Environment } from "../model/environment.ts";
import type { AgentFile, InProcessMcpServer, ResolvedAgentConfig } from "./types.ts";

export interface PreparedAgent {
  agent: Agent;
  /** The MCP servers that run in this process. The record contains only their names. */
  mcpServers: Record<string, InProcessMcpServer>;
}

/** Loads, validates and completes an agent given as a definition or a file. Throws a RequestError that lists all faults. */
export async function prepareAgent(given: ResolvedAgentConfig | AgentFile, cwd: string): Promise<PreparedAgent> {
  const schemas = openSchemaChecker();
  try {
    if ("path" in given) return { agent: complete(await agentFromFile(given, cwd, schemas), cwd), mcpServers: {} };
    const { plain, mcpServers } = splitServers(given);
    const checked = await checkSchemas(checkAgent(plain), schemas);
    if (!checked.ok) throw refused(checked.faults);
    return { agent: complete(checked.agent, cwd), mcpServers };
  } finally {
    await schemas.stop();
  }
}

async function agentFromFile(
  { path, name }: AgentFile,
  cwd: string,
  schemas: Parameters<typeof loadAgentFiles>[1],
): Promise<Agent> {
  const file = resolve(cwd, path);
  const { agents, faults } = await loadAgentFiles([file], schemas);
  const found = agents.filter(({ agent }) => name === undefined || agent.name === name);
  if (found.length === 1) return found[0]!.agent;
  if (faults.length > 0) throw refused(faults);
  const names = agents.map(({ agent }) => agent.name);
  const near = name === undefined ? undefined : suggest(name, names);
  throw new RequestError({
    code: "DROVER-AGT-001",
    field: "agent.name",
    message:
      name === undefined
        ? `${path} defines ${names.length} agents.`
        : `${path} defines no agent ${name}.${near ? ` Did you mean ${near}?` : ""}`,
    next: `Name one of: ${names.join(", ")}.`,
  });
}

/** An agent without an executor uses the Agent SDK. A relative working directory is relative to the caller's. */
function complete(agent: Agent, cwd: string): Agent {
  const { working_directory, executor } = agent;
  return {
    ...agent,
    ...(executor === undefined && agent.type === "autonomous" ? { executor: "claude-sdk" } : {}),
    ...(working_directory === undefined || isAbsolute(working_directory)
      ? {}
      : { working_directory: resolve(cwd, working_directory) }),
  };
}

function splitServers(given: ResolvedAgentConfig): {
  plain: Record<string, unknown>;
  mcpServers: PreparedAgent["mcpServers"];
} {
  const servers = Object.entries(given.mcp_servers ?? {});
  const inProcess = servers.filter((entry): entry is [string, InProcessMcpServer] => "instance" in entry[1]);
  if (inProcess.length === 0) return { plain: given, mcpServers: {} };
  const named = servers.map(([key, server]) => [key, "instance" in server ? { type: "sdk", name: key } : server]);
  return { plain: { ...given, mcp_servers: Object.fromEntries(named) }, mcpServers: Object.fromEntries(inProcess) };
}

/** The caller may give the agent any variable, but a variable that is not set is a mistake. */
export function checkVariables(agent: Agent, env: Environment): void {
  const all = { allowed: variablesIn(agent), env };
  const faults = [...expandAgent(agent, all).faults, ...expandText(agent.command ?? "", "command", all).faults];
  const [first] = faults;
  if (first === undefined) return;
  throw new RequestError({
    code: "DROVER-AGT-007",
    field: `agent.${first.path}`,
    message: faults
      .map(({ variable, path }) => `\${${variable}} in ${path} of the agent ${agent.name} is not set.`)
      .join(" "),
    next: `Set ${[...new Set(faults.map(({ variable }) => variable))].join(", ")} in the environment, or write $\${...} to keep the text unchanged.`,
  });
}

function refused(faults: readonly DefinitionFault[]): RequestError {
  const [first] = faults;
  return new RequestError({
    code: first!.code,
    field: first!.path === "" ? "agent" : `agent.${first!.path}`,
    message: faults.map(describeFault).join("\n"),
    next: first!.next,
  });
}
