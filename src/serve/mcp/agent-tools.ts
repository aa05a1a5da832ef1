import * as z from "zod";
import type { FlatAgent, Submission } from "../../wire/client.ts";
import { toToolName } from "./tool-name.ts";

type Schema = Record<string, unknown>;

/** An agent that is exposed as an MCP tool. */
export interface AgentTool {
  name: string;
  /** How a request names the agent: `name`, or `name@runner` if several runners offer it. */
  agent_name: string;
  agent: FlatAgent;
  inputSchema: Schema & { type: "object" };
}

/** Returns a tool for each agent with `expose: tool`. Expects the agents in order of precedence, as GET /agents lists them. */
export function buildAgentTools(agents: readonly FlatAgent[]): AgentTool[] {
  const tools = new Map<string, AgentTool>();
  for (const { agent_name, agent } of listAddressableAgents(agents)) {
    const name = toToolName(agent_name);
    // A tool name must never mean two agents, even if someone picks an agent name that matches another's hash.
    if (agent.expose !== "tool" || tools.has(name)) continue;
    tools.set(name, { name, agent_name, agent, inputSchema: buildInputSchema(agent) });
  }
  return [...tools.values()];
}

/** The agents a request can name. An agent from a file or the API hides runners' agents with the same name. */
export function listAddressableAgents(agents: readonly FlatAgent[]): { agent_name: string; agent: FlatAgent }[] {
  const byName = new Map<string, FlatAgent[]>();
  for (const agent of agents) byName.set(agent.name, [...(byName.get(agent.name) ?? []), agent]);
  return [...byName].flatMap(([name, [first, ...more]]) => {
    if (first === undefined) return [];
    if (more.length === 0 || first.runner_id === null) return [{ agent_name: name, agent: first }];
    return [first, ...more].map((agent) => ({ agent_name: `${name}@${agent.runner_id}`, agent }));
  });
}

/** For a procedural agent the arguments are its parameters. An autonomous agent also takes a prompt. */
function buildInputSchema({ type, parameters_schema, first_message }: FlatAgent): AgentTool["inputSchema"] {
  if (type === "procedural") return { ...parameters_schema, type: "object" };
  if (parameters_schema === undefined)
    return {
      type: "object",
      properties: { prompt },
      ...(first_message === undefined ? { required: ["prompt"] } : {}),
      additionalProperties: false,
    };
  // References such as #/$defs/x resolve from the root of the schema, so the definitions move there.
  const { $defs, definitions, $schema, ...parameters } = parameters_schema;
  const hasRequired = Array.isArray(parameters["required"]) && parameters["required"].length > 0;
  return {
    ...($schema === undefined ? {} : { $schema }),
    type: "object",
    properties: { prompt, parameters: { ...parameters, type: "object" } },
    ...(hasRequired ? { required: ["parameters"] } : {}),
    additionalProperties: false,
    ...($defs === undefined ? {} : { $defs }),
    ...(definitions === undefined ? {} : { definitions }),
  };
}

const prompt = { type: "string", description: "The task, in plain language" };

/** Builds the run request for a tool call. The parameters are validated when it is submitted. */
export function toSubmission(
  { agent_name, agent }: AgentTool,
  input: Schema,
): Pick<Submission, "agent_name" | "parameters" | "prompt"> {
  if (agent.type === "procedural") return { agent_name, parameters: input };
  return { agent_name, ...autonomousInput.parse(input) };
}

const autonomousInput = z.strictObject({
  prompt: z.string().max(1_000_000).optional(),
  parameters: z.record(z.string(), z.unknown()).optional(),
});
