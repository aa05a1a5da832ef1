import type { AgentPosition } from "./agent-position.ts";
import type { ClaimRuns, ListedAgent, RunnerRow, WaitReason } from "./dispatch-ops.ts";
import type { Run } from "./run.ts";

export interface DispatchReads {
  runner(runner_id: string): Promise<RunnerRow | null>;
  /** Online, draining and lately lost ones, by id. */
  runners(): Promise<RunnerRow[]>;
  /** The same, some at a time: at most `limit`, and fewer where they are large. */
  runner_page(page: { after?: string; limit: number; owner?: string }): Promise<{ items: RunnerRow[]; more: boolean }>;
  /** Those of this name that were put by the API, and those of runners that are there. */
  agents(name: string): Promise<ListedAgent[]>;
  /** All of them by name, some at a time: at most `limit`, and fewer where they are large. */
  agent_page(page: { after?: AgentPosition; limit: number }): Promise<{ items: ListedAgent[]; more: boolean }>;
  agent_names(limit: number): Promise<string[]>;
  /** A runner that polls; or why it may not. */
  poller(poll: Poll): Promise<Poller | { conflict: "unknown_runner" | "old_epoch" }>;
  /** Those of these runners that have an order, or a run they could claim. */
  with_work(runner_ids: readonly string[]): Promise<string[]>;
  /** Why a pending, waiting or parked run waits; empty where it does not, or only for its turn. null: no such run. */
  /** `shortages`: why some runners take no run although they have free slots, by their id. */
  why(run_id: string, shortages?: ReadonlyMap<string, string>): Promise<WaitReason[] | null>;
  /** The agent a run was submitted with; null for a run that no runner claims. */
  agent_of(
    run_id: string,
  ): Promise<{ agent: ListedAgent["agent"]; timeout_seconds: number | null; demands: Run["demands"] } | null>;
}

/** As it would be asked for with claim_runs. */
export type Poll = Pick<ClaimRuns, "runner_id" | "epoch" | "owner" | "claim_id" | "want" | "shortage">;

/** What a poll has to know before it waits. */
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
  /** By the store's clock, in milliseconds. */
  lease_until: number;
  /** claim_runs would give nothing now, and has nothing to write but the lease. */
  idle: boolean;
}
