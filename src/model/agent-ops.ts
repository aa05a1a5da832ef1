import type { Agent } from "./agent.ts";

export type AgentOp = PutAgent | DeleteAgent;

/** An agent put by the API: made, or replaced as a whole. Runs keep the one they were submitted with. */
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
