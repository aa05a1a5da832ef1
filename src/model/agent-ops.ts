import type { Agent } from "./agent.ts";

export type AgentOp = PutAgent | DeleteAgent;

/** Creates an agent through the API, or replaces it completely. Existing runs keep the definition they were submitted with. */
export interface PutAgent {
  op: "put_agent";
  agent: Agent;
  by: string;
}

export interface DeleteAgent {
  op: "delete_agent";
  name: string;
}

export type AgentResult =
  | { ok: true; op: "put_agent"; created: boolean }
  | { ok: true; op: "delete_agent" }
  | { ok: false; conflict: "not_found" };
