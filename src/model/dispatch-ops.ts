import type { Agent } from "./agent.ts";
import type { Correlation } from "./execution.ts";
import type { Invocation } from "./executor.ts";
import type { Order, Registration } from "./runner-port.ts";
import type { Run } from "./run.ts";
import type { StopReason } from "./states.ts";

/**
 * The store operations for dispatch: runners, claims, leases and orders. Leases are checked against the store's clock
 * only.
 */
export type DispatchOp =
  | RegisterRunner
  | ClaimRuns
  | Heartbeat
  | RenewIdle
  | LeaveRunner
  | DrainRunner
  | StopRuns
  | Rescue;

/** The runner that sends a request. */
export interface RunnerIdentity {
  runner_id: string;
  epoch: number;
  /** If set, runners of other owners are treated as unknown. */
  owner?: string;
}

/** Registers a runner and replaces its agents. It is a conflict if a live runner has the same id and another key. */
export interface RegisterRunner {
  op: "register_runner";
  runner_id: string;
  /** SHA-256 of the key. The key itself is never stored. */
  key_hash: string;
  /** The subject of the token that registered the runner. */
  owner: string;
  registration: Omit<Registration, "runner_key" | "protocol">;
  lease_ms: number;
}

/**
 * Assigns up to `want` matching pending runs to the runner, at most fifty, by priority and then by age. Runs resumed
 * after an answer come first and do not count against `want`. Runs that are over budget or at a usage limit are parked
 * instead.
 *
 * A repeated claim_id returns the same claims. The result includes the orders after `ack_order`. Renews the lease.
 */
export interface ClaimRuns extends RunnerIdentity {
  op: "claim_runs";
  claim_id: string;
  want: number;
  ack_order: number;
  lease_ms: number;
  /** Why the runner accepts no runs although it has free slots. If set, it gets no resumed runs either. */
  shortage?: string;
  /** Set while disk space is low. No run is assigned, and `why` reports this text. */
  pause_reason?: string;
  /** Repeats the claim for a held poll. It does not prove that the runner is alive, so it renews no lease. */
  is_repeat?: true;
}

/**
 * Renews the lease and compares the runner's runs with the store's. `held` lists every run the runner had when it
 * received the final response to `as_of_claim`, or when it registered (null). A run assigned before that point and missing
 * from `held` never arrived, so it returns to pending at no cost. If it had already started, the runner lost it, and the
 * attempt counts as lost. The claim named in `as_of_claim` gets no further runs.
 */
export interface Heartbeat extends RunnerIdentity {
  op: "heartbeat";
  held: [run_id: string, attempt: number][];
  /** Finished in this report; do not count them as lost. */
  finishing?: readonly [run_id: string, attempt: number][];
  as_of_claim: string | null;
  lease_ms: number;
}

/**
 * Renews the leases of idle runners in a held poll, because their open connection shows that they are alive. A runner
 * with runs must send its own heartbeat.
 */
export interface RenewIdle {
  op: "renew_idle";
  runner_ids: readonly string[];
  lease_ms: number;
}

/** Deregisters a runner: removes its agents and returns the runs it still has to pending at no cost. */
export interface LeaveRunner extends RunnerIdentity {
  op: "leave_runner";
}

/** Stops or resumes assigning runs to a runner. Its current runs continue. */
export interface DrainRunner {
  op: "drain_runner";
  runner_id: string;
  draining: boolean;
}

/** Cancels pending and parked runs at once. Other runs become `stopping`, and their runner is ordered to stop them. */
export interface StopRuns {
  op: "stop_runs";
  run_ids: string[];
  reason: StopReason;
  by: string;
}

/**
 * Applies everything that is due:
 * - Runners whose lease expired are lost. Their runs are requeued (`failures` + 1) while below max_attempts, or fail with
 *   `runner_lost`.
 * - Runs that match no runner fail with `no_matching_runner` once they are older than `unmatched_ms`.
 * - Parked runs whose time has come are requeued.
 * - Runs whose questions expired fail with `approval_expired`.
 *
 * One call does a limited amount of work: call again while `more`.
 */
export interface Rescue {
  op: "rescue";
  unmatched_ms: number;
  limit: number;
  /**
   * How long the calling process has been able to receive requests from runners; absent: always. A process that was
   * itself unreachable must not blame the runners, so it declares a runner lost only after listening for a whole lease,
   * and fails an unmatched run only after listening for `unmatched_ms`. `previous` is the result of its previous rescue. A
   * gap of half a lease between two rescues (database unreachable, host suspended) restarts the listening period.
   */
  listening?: { lease_ms: number; previous?: { since: number; at: number } };
}

export type DispatchResult =
  | { ok: true; op: "register_runner"; epoch: number }
  | {
      ok: true;
      op: "claim_runs";
      claims: ClaimedRun[];
      orders: Order[];
      draining: boolean;
      /** The runner already has the response to this claim, so this request is a late duplicate of its poll. */
      closed?: true;
    }
  | {
      ok: true;
      op: "heartbeat";
      fenced: [string, number][];
      abandon: [string, number][];
      requeued: string[];
      /** Runs of this runner whose agent has used up its budget for today. */
      over_budget?: [string, number][];
    }
  | { ok: true; op: "renew_idle" }
  | { ok: true; op: "leave_runner"; requeued: string[] }
  | { ok: true; op: "drain_runner" }
  | { ok: true; op: "stop_runs"; cancelled: string[]; stopping: string[]; untouched: string[]; runners: string[] }
  | {
      ok: true;
      op: "rescue";
      at: number;
      /** Start of the current uninterrupted listening period. */
      since: number;
      lost_runners: string[];
      requeued: string[];
      failed: string[];
      more: boolean;
    }
  | { ok: false; conflict: "duplicate_runner" | "unknown_runner" | "old_epoch" };

export interface ClaimedRun {
  run_id: string;
  attempt: number;
  invocation: Invocation;
  correlation: Correlation;
  /** Overrides the agent's timeout. */
  timeout_seconds: number | null;
  /** The original parameters and prompt, encrypted, if those in the invocation are redacted. */
  sealed?: string;
}

export interface RunnerRow {
  runner_id: string;
  owner: string;
  name: string | null;
  hostname: string;
  place_id: string | null;
  project_dir: string;
  executor_profile: string;
  executor: Registration["executor"];
  tags: string[];
  require_matching_tags: boolean;
  only_pinned: boolean;
  slots: number;
  /** The only agent whose runs this runner accepts. null: any agent. */
  only_agent: string | null;
  agents: string[];
  status: "online" | "draining" | "lost";
  epoch: number;
  running: number;
  registered_at: string;
  last_seen_at: string;
}

/** An agent in a listing: defined in a file, created through the API, or offered by a runner. */
export interface ListedAgent {
  agent: Agent;
  source: "file" | "api" | "runner";
  runner_id: string | null;
  /** Who created the agent, or who owns the runner that offers it. null for files. */
  owner: string | null;
  /** The status of the runner that offers it. */
  runner_status?: RunnerRow["status"];
  /** The error in the agent's current file, if this is the last valid definition. */
  fault?: string | null;
}

/** One reason why a run is waiting. */
export type WaitReason = {
  demand:
    | keyof Run["demands"]
    | "slots"
    | "max_concurrent"
    | "session"
    | "schedule"
    | "directory"
    | "disk"
    | "descriptors"
    | "agent"
    | "approval"
    | "budget"
    | "usage_limit";
  detail: string;
};
