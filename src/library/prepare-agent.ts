import { isAbsolute, resolve } from "node:path";
import { checkAgent } from "../define/agent-file.ts";
import { loadAgentFiles } from "../define/load-agents.ts";
import { checkSchemas } from "../define/check-schemas.ts";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import type { Agent } from "../model/agent.ts";
import { type DefinitionFault, describeFault } from "../model/definition-fault.ts";
import { RequestError } from "../model/errors.ts";
import { expandAgent, expandText, listVariables } from "../model/expand-agent.ts";
import { suggest } from "../model/suggest.ts";
import type { Environment } from "../model/environment.ts";
import type { AgentFile, InProcessMcpServer, ResolvedAgentConfig } from "./types.ts";

export interface PreparedAgent {
  agent: Agent;
  /** The MCP servers that run in this process. The record holds only their names. */
  mcpServers: Record<string, InProcessMcpServer>;
}

/**
 * Loads and validates an agent from a definition or a file, and fills in defaults. Throws a RequestError that lists all
 * faults.
 */
export async function prepareAgent(source: ResolvedAgentConfig | AgentFile, cwd: string): Promise<PreparedAgent> {
  const schemas = openSchemaChecker();
  try {
    if ("path" in source)
      return { agent: withDefaults(await loadAgentFile(source, cwd, schemas), cwd), mcpServers: {} };
    const { plain, mcpServers } = splitServers(source);
    const checked = await checkSchemas(checkAgent(plain), schemas);
    if (!checked.ok) throw invalidAgent(checked.faults);
    return { agent: withDefaults(checked.agent, cwd), mcpServers };
  } finally {
    await schemas.stop();
  }
}

async function loadAgentFile(
  { path, name }: AgentFile,
  cwd: string,
  schemas: Parameters<typeof loadAgentFiles>[1],
): Promise<Agent> {
  const file = resolve(cwd, path);
  const { agents, faults } = await loadAgentFiles([file], schemas);
  const matches = agents.filter(({ agent }) => name === undefined || agent.name === name);
  if (matches.length === 1) return matches[0]!.agent;
  if (faults.length > 0) throw invalidAgent(faults);
  const names = agents.map(({ agent }) => agent.name);
  const suggestion = name === undefined ? undefined : suggest(name, names);
  throw new RequestError({
    code: "DROVER-AGT-001",
    field: "agent.name",
    message:
      name === undefined
        ? `${path} defines ${names.length} agents.`
        : `${path} does not define the agent ${name}.${suggestion ? ` Did you mean ${suggestion}?` : ""}`,
    next: `Set agent.name to one of: ${names.join(", ")}.`,
  });
}

/** An agent without an executor uses the Agent SDK. A relative working directory is relative to the caller's. */
function withDefaults(agent: Agent, cwd: string): Agent {
  const { working_directory, executor } = agent;
  return {
    ...agent,
    ...(executor === undefined && agent.type === "autonomous" ? { executor: "claude-sdk" } : {}),
    ...(working_directory === undefined || isAbsolute(working_directory)
      ? {}
      : { working_directory: resolve(cwd, working_directory) }),
  };
}

function splitServers(config: ResolvedAgentConfig): {
  plain: Record<string, unknown>;
  mcpServers: PreparedAgent["mcpServers"];
} {
  const servers = Object.entries(config.mcp_servers ?? {});
  const inProcess = servers.filter((entry): entry is [string, InProcessMcpServer] => "instance" in entry[1]);
  if (inProcess.length === 0) return { plain: config, mcpServers: {} };
  const references = servers.map(([key, server]) => [key, "instance" in server ? { type: "sdk", name: key } : server]);
  return {
    plain: { ...config, mcp_servers: Object.fromEntries(references) },
    mcpServers: Object.fromEntries(inProcess),
  };
}

/** Allows the agent to use any variable, but rejects variables that are not set. */
export function checkVariables(agent: Agent, env: Environment): void {
  const variables = { allowed: listVariables(agent), env };
  const faults = [
    ...expandAgent(agent, variables).faults,
    ...expandText(agent.command ?? "", "command", variables).faults,
  ];
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

function invalidAgent(faults: readonly DefinitionFault[]): RequestError {
  const [first] = faults;
  return new RequestError({
    code: first!.code,
    field: first!.path === "" ? "agent" : `agent.${first!.path}`,
    message: faults.map(describeFault).join("\n"),
    next: first!.next,
  });
}
