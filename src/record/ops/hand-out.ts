import type { Agent } from "../../model/agent.ts";
import type { ClaimedRun } from "../../model/dispatch-ops.ts";
import type { Invocation } from "../../model/executor.ts";
import { first, write, type Work } from "../query.ts";
import { fromColumn, textOrNull } from "../text.ts";
import type { Transaction } from "../transaction.ts";
import type { Head } from "./pick-runs.ts";
import { executorOf, type StoredRunner } from "./runner-row.ts";
import { storeEvent } from "./store-events.ts";

const claim = `
  update runs set status = 'claimed', attempt = ?, last_n = 0, last_seq = ?, runner_id = ?, claim_no = ?, claimed_at = ?
  where run_no = ?`;
const placeSession = `
  update sessions set hostname = ?, executor_profile = ?, runner_id = ? where session_id = ?`;
const selectInvocation = `
  select runs.run_id, runs.attempt, runs.mode, runs.session_id, runs.project_dir, runs.attended, runs.timeout_seconds,
    runs.task_id, runs.step_id, runs.tool_call_id, runs.worktree_id, runs.repo_sha, run_bodies.parameters, run_bodies.prompt, agent_revs.body as agent, sessions.executor_session_id,
    runs.forked_from, origin.executor_session_id as origin_session_id
  from runs join agent_revs using (agent_rev_id) left join run_bodies using (run_no)
    left join sessions on sessions.session_id = runs.session_id
    left join sessions origin on origin.session_id = runs.forked_from
  where run_no = ?`;

/** From here on the run is this runner's, under a new attempt. */
export function* handOut(tx: Transaction, runner: StoredRunner, head: Head, claim_no: number): Work<ClaimedRun> {
  const at = tx.now.toISOString();
  const run = {
    run_no: head.run_no,
    run_id: fromColumn(head.run_id),
    attempt: head.attempt + 1,
    last_n: 0,
    last_seq: head.last_seq,
  };
  yield* storeEvent(tx, run, null, at, { type: "status", status: "claimed", reason: fromColumn(runner.column) });
  yield write(claim, run.attempt, run.last_seq, runner.column, claim_no, at, run.run_no);
  const { hostname = null, executor_profile = null } = runner.row;
  if (head.session_id !== null) yield write(placeSession, hostname, executor_profile, runner.column, head.session_id);
  return yield* claimedRun(runner, run.run_no);
}

export function* claimedRun(runner: StoredRunner, run_no: number): Work<ClaimedRun> {
  const [row = {}] = yield first(selectInvocation, run_no);
  const timeout_seconds = row["timeout_seconds"] === null ? null : Number(row["timeout_seconds"]);
  // Both were written from the model's types by create_run.
  const snapshot = JSON.parse(String(row["agent"])) as Agent;
  const parameters = JSON.parse(String(row["parameters"] ?? "{}")) as Invocation["parameters"];
  const agent = timeout_seconds === null ? snapshot : { ...snapshot, timeout_seconds };
  const mode = row["mode"] as Invocation["mode"];
  const invocation: Invocation = {
    schema_version: 1,
    run_id: fromColumn(String(row["run_id"])),
    attempt: Number(row["attempt"]),
    mode,
    session_id: textOrNull(row["session_id"]) ?? fromColumn(String(row["run_id"])),
    // A fork goes on from the session it was forked from, whatever its own is called by now.
    executor_session_id:
      mode === "start" ? null : textOrNull(row[mode === "fork" ? "origin_session_id" : "executor_session_id"]),
    forked_from: mode === "fork" ? textOrNull(row["forked_from"]) : null,
    agent,
    parameters,
    prompt: textOrNull(row["prompt"]),
    project_dir: textOrNull(row["project_dir"]),
    attended: row["attended"] === 1,
    executor_config: executorOf(runner.row).config,
  };
  const correlation = {
    session_id: invocation.session_id,
    task_id: textOrNull(row["task_id"]),
    step_id: textOrNull(row["step_id"]),
    tool_call_id: textOrNull(row["tool_call_id"]),
    worktree_id: textOrNull(row["worktree_id"]),
    repo_sha: textOrNull(row["repo_sha"]),
  };
  const { run_id, attempt } = invocation;
  return { run_id, attempt, invocation, correlation, timeout_seconds: agent.timeout_seconds ?? null };
}
