import type { Agent, RunRow } from "./queries.ts";

/** Returns why the run cannot be submitted again, or null if it can. */
export function getNoRetryReason({ agent_name }: Pick<RunRow, "agent_name">, agent: Agent | undefined): string | null {
  if (agent_name === "exec") return "A command of drover exec has no agent. Run the command itself again";
  return agent === undefined ? "This agent no longer exists" : null;
}
