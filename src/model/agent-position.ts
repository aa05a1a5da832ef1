import type { ListedAgent } from "./dispatch-ops.ts";

/** Where an agent stands in the list of all: by name, then in the order in which those of one name go before each other. */
export interface AgentPosition {
  name: string;
  /** 0: of a file, 1: put by the API, 2: of the runner in this process, 3: of another runner. */
  rank: number;
  /** "" for those that no other runner brings. */
  runner_id: string;
}

export function positionOfAgent({
  agent,
  source,
  runner_id,
}: Pick<ListedAgent, "agent" | "source" | "runner_id">): AgentPosition {
  const rank = source === "file" ? 0 : source === "api" ? 1 : runner_id === null ? 2 : 3;
  return { name: agent.name, rank, runner_id: runner_id ?? "" };
}

/** As databases compare texts: by their bytes. */
export function compareAgentPositions(one: AgentPosition, other: AgentPosition): number {
  return byBytes(one.name, other.name) || one.rank - other.rank || byBytes(one.runner_id, other.runner_id);
}

function byBytes(one: string, other: string): number {
  return one === other ? 0 : Buffer.compare(Buffer.from(one), Buffer.from(other));
}
