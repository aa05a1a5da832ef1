import type { AgentPosition } from "./agent-position.ts";
import type { ClaimRuns, ListedAgent, RunnerRow, WaitReason } from "./dispatch-ops.ts";
import type { Run } from "./run.ts";

export interface DispatchReads {
  runner(runner_id: string): Promise<RunnerRow | null>;
  /** Online, draining and recently lost runners, sorted by id. */
  runners(): Promise<RunnerRow[]>;
  /** One page of `runners`: at most `limit` rows, fewer if the rows are large. */
  runner_page(page: { after?: string; limit: number; owner?: string }): Promise<{ items: RunnerRow[]; more: boolean }>;
  /** Agents of this name that were created through the API or are offered by live runners. */
  agents(name: string): Promise<ListedAgent[]>;
  /** One page of all agents, sorted by name: at most `limit` rows, fewer if the rows are large. */
  agent_page(page: { after?: AgentPosition; limit: number }): Promise<{ items: ListedAgent[]; more: boolean }>;
  agent_names(limit: number): Promise<string[]>;
  /** The polling runner, or the reason why its poll is rejected. */
  poller(poll: Poll): Promise<Poller | { conflict: "unknown_runner" | "old_epoch" }>;
  /** The subset of these runners that have an order or could claim a run. */
  runners_with_work(runner_ids: readonly string[]): Promise<string[]>;
  /**
   * Why a pending, waiting or parked run is waiting. Empty if only other runs are ahead of it, or if it is not waiting;
   * null if the run does not exist. `shortages` maps a runner id to why that runner accepts no runs despite free slots.
   */
  why(run_id: string, shortages?: ReadonlyMap<string, string>): Promise<WaitReason[] | null>;
  /** The agent that a run was submitted with. null for a run that runners do not claim. */
  submitted_agent(
    run_id: string,
  ): Promise<{ agent: ListedAgent["agent"]; timeout_seconds: number | null; demands: Run["demands"] } | null>;
}

/** The parts of a claim_runs operation that identify a poll. */
export type Poll = Pick<ClaimRuns, "runner_id" | "epoch" | "owner" | "claim_id" | "want" | "shortage">;

/** The facts about a runner that a held poll needs. */
export interface Poller extends Pick<
  RunnerRow,
  | "runner_id"
  | "hostname"
  | "place_id"
  | "project_dir"
  | "executor_profile"
  | "tags"
  | "require_matching_tags"
  | "only_pinned"
  | "only_agent"
> {
  executor_type: string;
  draining: boolean;
  /** In milliseconds on the store's clock. */
  lease_until: number;
  /** Whether claim_runs would return nothing now and write nothing except the lease. */
  idle: boolean;
}
