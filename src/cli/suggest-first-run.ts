import type { FlatAgent } from "../wire/client.ts";
import { findDroverCommand } from "./drover-command.ts";

type OfferedAgent = Pick<FlatAgent, "name" | "type" | "runner_id" | "parameters_schema">;

/** Suggests a `drover run` command for a newcomer to try. Returns null if no runner offers an agent. */
export function suggestFirstRun(agents: readonly OfferedAgent[]): string | null {
  const offeredAgents = agents.filter(({ runner_id }) => runner_id !== null);
  const agent = offeredAgents.find(({ name }) => name === "echo") ?? offeredAgents[0];
  if (!agent) return null;
  if (agent.name === "echo") return `${findDroverCommand()} run echo --message "Hello World"`;
  const parameterOptions = listRequiredParameters(agent.parameters_schema).map((name) => ` --${name} ...`);
  const promptOption = agent.type === "autonomous" && parameterOptions.length === 0 ? ' --prompt "..."' : "";
  return `${findDroverCommand()} run ${agent.name}${parameterOptions.join("")}${promptOption}`;
}

function listRequiredParameters(schema: OfferedAgent["parameters_schema"]): string[] {
  const names = schema?.["required"];
  return Array.isArray(names) ? names.filter((name): name is string => typeof name === "string") : [];
}
