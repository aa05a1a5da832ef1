import type { Agent } from "../../model/agent.ts";
import type { ClaimedRun } from "../../model/dispatch-ops.ts";
import type { Invocation } from "../../model/executor.ts";
import { readAnswers } from "../moves/questions.ts";
import type { Row, Work } from "../query.ts";
import { fromColumn, textOrNull } from "../text.ts";
import { parseGrants } from "./grants.ts";
import { readEarlierInputs } from "./inputs.ts";
import { parseExecutor, type StoredRunner } from "./runner-row.ts";

/** Columns of `runs` that an invocation needs. */
export const invocationColumns = `run_id, attempt, mode, session_id, project_dir, attended, timeout_seconds, task_id, step_id,
    tool_call_id, worktree_id, repo_sha, forked_from, fork_at_turn, agent_rev_id, asked, continues`;

/**
 * Extends a query of `invocationColumns` with everything else a runner needs. The inner query runs first, so that only its
 * rows are joined.
 */
export function joinInvocations(runs: string): string {
  return `
  select found.*, run_bodies.parameters, run_bodies.prompt, run_bodies.sealed, agent_revs.body as agent, sessions.executor_session_id, sessions.granted_tools,
    origin.executor_session_id as origin_session_id,
    (select saved.run_id from session_states saved where saved.session_id = found.session_id) as saved_by
  from (${runs}) found
    left join agent_revs on agent_revs.agent_rev_id = found.agent_rev_id
    left join run_bodies on run_bodies.run_no = found.run_no
    left join sessions on sessions.session_id = found.session_id
    left join sessions origin on origin.session_id = found.forked_from`;
}

export const selectInvocation = joinInvocations(`select run_no, ${invocationColumns} from runs where run_no = ?`);

/** Builds the claimed run from a row of `joinInvocations`. */
export function* buildClaimedRun(runner: StoredRunner, row: Row, attempt: number): Work<ClaimedRun> {
  const timeout_seconds = row["timeout_seconds"] === null ? null : Number(row["timeout_seconds"]);
  // create_run wrote both values from the model's types.
  const snapshot = JSON.parse(String(row["agent"])) as Agent;
  const parameters = JSON.parse(String(row["parameters"] ?? "{}")) as Invocation["parameters"];
  const agent = timeout_seconds === null ? snapshot : { ...snapshot, timeout_seconds };
  const mode = row["mode"] as Invocation["mode"];
  const continues = row["saved_by"] === row["run_id"] || row["continues"] === 1;
  const invocation: Invocation = {
    schema_version: 1,
    run_id: fromColumn(String(row["run_id"])),
    attempt,
    mode,
    session_id: textOrNull(row["session_id"]) ?? fromColumn(String(row["run_id"])),
    continues,
    // A fork continues the session it was forked from, until it has a state of its own.
    executor_session_id:
      mode === "start" && !continues
        ? null
        : textOrNull(row[mode === "fork" && !continues ? "origin_session_id" : "executor_session_id"]),
    forked_from: mode === "fork" ? textOrNull(row["forked_from"]) : null,
    fork_at_turn: row["fork_at_turn"] === null ? null : Number(row["fork_at_turn"]),
    agent,
    parameters,
    prompt: textOrNull(row["prompt"]),
    project_dir: textOrNull(row["project_dir"]),
    attended: row["attended"] === 1,
    answers: row["asked"] === 1 ? yield* readAnswers(Number(row["run_no"]), attempt) : [],
    inputs: attempt > 1 ? yield* readEarlierInputs(Number(row["run_no"]), attempt) : [],
    granted_tools: parseGrants(row),
    executor_config: parseExecutor(runner.row).config,
  };
  const correlation = {
    session_id: invocation.session_id,
    task_id: textOrNull(row["task_id"]),
    step_id: textOrNull(row["step_id"]),
    tool_call_id: textOrNull(row["tool_call_id"]),
    worktree_id: textOrNull(row["worktree_id"]),
    repo_sha: textOrNull(row["repo_sha"]),
  };
  return {
    run_id: invocation.run_id,
    attempt,
    invocation,
    correlation,
    timeout_seconds: agent.timeout_seconds ?? null,
    ...(typeof row["sealed"] === "string" ? { sealed: row["sealed"] } : {}),
  };
}
