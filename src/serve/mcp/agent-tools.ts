import * as z from "zod";
import type { FlatAgent, Submission } from "../../wire/client.ts";
import { toolName } from "./tool-name.ts";

type Schema = Record<string, unknown>;

/** An agent that is offered as a tool of its own. */
export interface AgentTool {
  name: string;
  /** How a request names the agent: `name`, or `name@runner` where several runners bring it. */
  agent_name: string;
  agent: FlatAgent;
  inputSchema: Schema & { type: "object" };
}

/** One for each agent with `expose: tool`. `agents` is in order of precedence, as GET /agents lists them. */
export function agentTools(agents: readonly FlatAgent[]): AgentTool[] {
  const tools = new Map<string, AgentTool>();
  for (const { agent_name, agent } of addressableAgents(agents)) {
    const name = toolName(agent_name);
    // A name must never mean two agents, even if somebody chooses one to match another's hash.
    if (agent.expose !== "tool" || tools.has(name)) continue;
    tools.set(name, { name, agent_name, agent, inputSchema: inputSchemaOf(agent) });
  }
  return [...tools.values()];
}

/** The agents a request can name. One of a file or of the API hides those that runners bring under its name. */
export function addressableAgents(agents: readonly FlatAgent[]): { agent_name: string; agent: FlatAgent }[] {
  const byName = new Map<string, FlatAgent[]>();
  for (const agent of agents) byName.set(agent.name, [...(byName.get(agent.name) ?? []), agent]);
  return [...byName].flatMap(([name, [first, ...more]]) => {
    if (first === undefined) return [];
    if (more.length === 0 || first.runner_id === null) return [{ agent_name: name, agent: first }];
    return [first, ...more].map((agent) => ({ agent_name: `${name}@${agent.runner_id}`, agent }));
  });
}

/** A procedural agent takes its parameters as the arguments; an autonomous one takes a prompt beside them. */
function inputSchemaOf({ type, parameters_schema, first_message }: FlatAgent): AgentTool["inputSchema"] {
  if (type === "procedural") return { ...parameters_schema, type: "object" };
  if (parameters_schema === undefined)
    return {
      type: "object",
      properties: { prompt },
      ...(first_message === undefined ? { required: ["prompt"] } : {}),
      additionalProperties: false,
    };
  // A reference such as #/$defs/x is read from the root of the schema, so definitions move there.
  const { $defs, definitions, $schema, ...parameters } = parameters_schema;
  const needed = Array.isArray(parameters["required"]) && parameters["required"].length > 0;
  return {
    ...($schema === undefined ? {} : { $schema }),
    type: "object",
    properties: { prompt, parameters: { ...parameters, type: "object" } },
    ...(needed ? { required: ["parameters"] } : {}),
    additionalProperties: false,
    ...($defs === undefined ? {} : { $defs }),
    ...(definitions === undefined ? {} : { definitions }),
  };
}

const prompt = { type: "string", description: "What to do, in words" };

/** The request that a call of the tool makes. Whether the parameters fit is checked when it is submitted. */
export function submissionOf(
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
