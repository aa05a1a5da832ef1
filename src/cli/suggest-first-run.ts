import type { FlatAgent } from "../wire/client.ts";

type Offered = Pick<FlatAgent, "name" | "type" | "runner_id" | "parameters_schema">;

/** A `drover run` command for a newcomer to try, with an agent that a runner offers. null if there is none. */
export function suggestFirstRun(agents: readonly Offered[]): string | null {
  const offered = agents.filter(({ runner_id }) => runner_id !== null);
  const agent = offered.find(({ name }) => name === "echo") ?? offered[0];
  if (!agent) return null;
  if (agent.name === "echo") return 'drover run echo --message "Hello World"';
  const needs = required(agent.parameters_schema).map((name) => ` --${name} ...`);
  const asks = agent.type === "autonomous" && needs.length === 0 ? ' --prompt "..."' : "";
  return `drover run ${agent.name}${needs.join("")}${asks}`;
}

function required(schema: Offered["parameters_schema"]): string[] {
  const names = schema?.["required"];
  return Array.isArray(names) ? names.filter((name): name is string => typeof name === "string") : [];
}
