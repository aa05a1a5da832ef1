import type { ListedAgent, RunnerRow, WhyPending } from "./dispatch-ops.ts";
import type { Run } from "./run.ts";

export interface DispatchReads {
  runner(runner_id: string): Promise<RunnerRow | null>;
  /** Online, draining and lately lost ones, by id. */
  runners(): Promise<RunnerRow[]>;
  /** Those put by the API and those of runners that are there, by name. */
  agents(name?: string): Promise<ListedAgent[]>;
  /** Is there an order for this runner, or a run it could claim? */
  has_work(runner_id: string): Promise<boolean>;
  /** Why a pending run waits; empty where it does not wait, or only for its turn. null: no such run. */
  why(run_id: string): Promise<WhyPending[] | null>;
  /** The agent a run was submitted with; null for a run that no runner claims. */
  agent_of(
    run_id: string,
  ): Promise<{ agent: ListedAgent["agent"]; timeout_seconds: number | null; demands: Run["demands"] } | null>;
}
