import type { Correlation } from "./execution.ts";
import type { Run } from "./run.ts";

type RequiredFields = Pick<Run, "run_id" | "agent_name" | "created_by" | "created_at">;

/** Returns a pending run with default values, overridden by the given fields. */
export function newRun(fields: RequiredFields & Partial<Run>): Run {
  return {
    mode: "start",
    status: "pending",
    reason: null,
    error: null,
    waiting_for: null,
    parked_why: null,
    parked_until: null,
    parameters: {},
    prompt: null,
    attended: false,
    forked_from: null,
    fork_at_turn: null,
    parent_run_id: null,
    retry_of: null,
    trigger_type: "manual",
    schedule: null,
    project_dir: null,
    model: null,
    demands: {},
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
    claimed_at: null,
    started_at: null,
    finished_at: null,
    ...noCorrelation,
    ...fields,
  };
}

export const noCorrelation: Correlation = {
  session_id: null,
  task_id: null,
  step_id: null,
  tool_call_id: null,
  worktree_id: null,
  repo_sha: null,
};
