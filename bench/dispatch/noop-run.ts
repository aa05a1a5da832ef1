import type { Agent } from "../../src/model/agent.ts";
import type { NewId } from "../../src/model/ids.ts";
import type { Run } from "../../src/model/run.ts";
import type { CreateRun } from "../../src/model/store.ts";
import { payload } from "./side.ts";

/** Its executor does nothing, see noop-executor.mjs: what is measured is everything around it. */
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

/** As src/submit makes it of a request for this agent. */
export function noopRun(newId: NewId, id: string): CreateRun {
  const run: Run = {
    run_id: newId(),
    agent_name: noopAgent.name,
    created_by: "admin",
    mode: "start",
    status: "pending",
    reason: null,
    error: null,
    waiting_for: null,
    parameters: payload(id),
    prompt: null,
    attended: false,
    session_id: newId(),
    forked_from: null,
    parent_run_id: null,
    retry_of: null,
    trigger_type: "api",
    schedule: null,
    project_dir: null,
    demands: { executor_type: "noop" },
    priority: 0,
    attempt: 0,
    failures: 0,
    runner_id: null,
    progress: null,
    exit_code: null,
    result_text: null,
    result_data: null,
    summary: null,
    usage: null,
    isolation: null,
    created_at: new Date().toISOString(),
    claimed_at: null,
    started_at: null,
    finished_at: null,
    task_id: null,
    step_id: null,
    tool_call_id: null,
    worktree_id: null,
    repo_sha: null,
  };
  return { op: "create_run", run, events: [], agent: noopAgent };
}
