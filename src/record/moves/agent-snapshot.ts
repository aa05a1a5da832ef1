import type { Agent } from "../../model/agent.ts";
import { first, type Work } from "../query.ts";

const selectBody = `select body from agent_revs where agent_rev_id = ?`;

/** The agent as it was when the run was submitted; null for a run that runners do not claim. */
export function* readAgentSnapshot({ agent_rev_id }: { agent_rev_id: number | null }): Work<Agent | null> {
  if (agent_rev_id === null) return null;
  const [row] = yield first(selectBody, agent_rev_id);
  // create_run wrote this value from an Agent.
  return row === undefined ? null : (JSON.parse(String(row["body"])) as Agent);
}
