import type { Agent } from "../../src/model/agent.ts";
import type { NewId } from "../../src/model/ids.ts";
import { newRun } from "../../src/model/new-run.ts";
import type { CreateRun } from "../../src/model/store.ts";
import { payload } from "./side.ts";

/** An agent whose executor does nothing (noop-executor.mjs), so that everything around it is measured. */
export const noopAgent: Agent = {
  name: "noop",
  description: null,
  type: "procedural",
  executor: "noop",
  command: "none",
  parameters_validation: "strict",
  list_style: "comma",
  parameters_schema: {
    type: "object",
    properties: { id: { type: "string" }, message: { type: "string" } },
    required: ["id"],
    additionalProperties: false,
  },
  max_attempts: 1,
  trust_project_settings: false,
};

/** The operation that src/submit creates from a request for this agent. */
export function createNoopRun(newId: NewId, id: string): CreateRun {
  const run = newRun({
    run_id: newId(),
    agent_name: noopAgent.name,
    created_by: "admin",
    parameters: payload(id),
    session_id: newId(),
    trigger_type: "api",
    demands: { executor_type: "noop" },
    created_at: new Date().toISOString(),
  });
  return { op: "create_run", run, events: [], agent: noopAgent };
}
