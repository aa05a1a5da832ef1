import type { ListedAgent } from "./dispatch-ops.ts";

/** The sort key of an agent in a listing: by name, then by precedence among agents of the same name. */
export interface AgentPosition {
  name: string;
  /** 0: from a file, 1: created through the API, 2: from the runner in this process, 3: from another runner. */
  rank: number;
  /** Empty unless another runner offers the agent. */
  runner_id: string;
}

export function toAgentPosition({
  agent,
  source,
  runner_id,
}: Pick<ListedAgent, "agent" | "source" | "runner_id">): AgentPosition {
  const rank = source === "file" ? 0 : source === "api" ? 1 : runner_id === null ? 2 : 3;
  return { name: agent.name, rank, runner_id: runner_id ?? "" };
}

/** Compares text by its bytes, as the databases do. */
export function compareAgentPositions(a: AgentPosition, b: AgentPosition): number {
  return compareBytes(a.name, b.name) || a.rank - b.rank || compareBytes(a.runner_id, b.runner_id);
}

function compareBytes(a: string, b: string): number {
  return a === b ? 0 : Buffer.compare(Buffer.from(a), Buffer.from(b));
}
