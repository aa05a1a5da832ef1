import type { Correlation } from "./execution.ts";
import type { Run } from "./run.ts";

/** What only the caller knows of a new run. */
type Known = Pick<Run, "run_id" | "agent_name" | "created_by" | "created_at">;

/** A run nobody has worked on yet; the caller passes what differs. */
export function newRun(known: Known & Partial<Run>): Run {
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
    ...known,
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
