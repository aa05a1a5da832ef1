import type { Agent } from "./agent.ts";
import type { Correlation } from "./execution.ts";
import type { Invocation } from "./executor.ts";
import type { Order, Registration } from "./runner-port.ts";
import type { Run } from "./run.ts";
import type { StopReason } from "./states.ts";

/**
 * The store operations of dispatch: runners, claims, leases, orders. As with every operation, plain
 * data in, a result out, durable when answered; only the store's own clock judges a lease.
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

/** A runner as it speaks for itself. */
export interface RunnerIdentity {
  runner_id: string;
  epoch: number;
  /** Where it is given, another owner's runner is as good as unknown. */
  owner?: string;
}

/** Replaces the runner's agents. A live runner of the same id with another key is a conflict. */
export interface RegisterRunner {
  op: "register_runner";
  runner_id: string;
  /** SHA-256 of the key; the key itself is never stored. */
  key_hash: string;
  /** The token's subject: whose runner it is. */
  owner: string;
  registration: Omit<Registration, "runner_key" | "protocol">;
  lease_ms: number;
}

/**
 * Hands out at most `want` pending runs the runner matches, highest priority first, oldest first; never more than fifty.
 * Runs that somebody has answered or resumed come first, whatever it wants. Those whose budget or usage limit does not
 * let them go on are parked instead.
 * The same claim_id is answered with the same claims. Orders after `ack_order` come along.
 * Renews the lease.
 */
export interface ClaimRuns extends RunnerIdentity {
  op: "claim_runs";
  claim_id: string;
  want: number;
  ack_order: number;
  lease_ms: number;
  /** Why the runner wants none although it has free slots: then it is not given resumed ones either. */
  shortage?: string;
  /** Set while the disk is low: nothing is handed out, and `why` says so. */
  hold?: string;
  /** Asked again for a poll that is held open: proves nothing about the runner, so renews no lease. */
  again?: true;
}

/**
 * Renews the lease. `held` is complete as of the answer to `as_of_claim`, which is the last one to that claim: what was
 * handed to this runner up to it and is not held goes back to pending at no cost. null: as of its registration.
 * A claim that was named here is given no more runs.
 * One that had already begun was not lost on the way but by the runner: that counts as a loss does.
 */
export interface Heartbeat extends RunnerIdentity {
  op: "heartbeat";
  held: [run_id: string, attempt: number][];
  /** Of these nothing need be told where they are no longer held: their ends came along. */
  finishing?: readonly [run_id: string, attempt: number][];
  as_of_claim: string | null;
  lease_ms: number;
}

/**
 * Renews the leases of runners that wait in a held poll and have nothing: their open connection is the sign of life.
 * One that has something to lose must speak for itself.
 */
export interface RenewIdle {
  op: "renew_idle";
  runner_ids: readonly string[];
  lease_ms: number;
}

/** A runner says goodbye: its agents go, what it still held goes back to pending at no cost. */
export interface LeaveRunner extends RunnerIdentity {
  op: "leave_runner";
}

/** No further claims for it; what it runs goes on. */
export interface DrainRunner {
  op: "drain_runner";
  runner_id: string;
  draining: boolean;
}

/** Pending and parked runs are cancelled at once; the others become `stopping` and their runner is ordered to end them. */
export interface StopRuns {
  op: "stop_runs";
  run_ids: string[];
  reason: StopReason;
  by: string;
}

/**
 * What time brings: runners whose lease ran out are lost, their runs requeued (`failures` + 1, while
 * below max_attempts) or failed as runner_lost; runs that no runner can take fail as
 * no_matching_runner once older than `unmatched_ms`. Parked runs go on when their time has come (`requeued`), and runs
 * whose questions nobody answered in time fail as approval_expired. Bounded: call again while `more`.
 */
export interface Rescue {
  op: "rescue";
  unmatched_ms: number;
  limit: number;
  /**
   * Since when the process that asks could hear runners; absent: always. It loses a runner only after it has listened for a
   * whole lease, and fails an unmatched run only after it has listened for `unmatched_ms`: what others heard, or could
   * not, does not matter. `before` is what its previous rescue returned; half a lease without one is a break (the database
   * was away, the host asleep), and listening begins anew.
   */
  listening?: { lease_ms: number; before?: { since: number; at: number } };
}

export type DispatchResult =
  | { ok: true; op: "register_runner"; epoch: number }
  | { ok: true; op: "claim_runs"; claims: ClaimedRun[]; orders: Order[]; draining: boolean }
  | {
      ok: true;
      op: "heartbeat";
      fenced: [string, number][];
      abandon: [string, number][];
      requeued: string[];
      /** Held runs whose agent has spent what it may spend today. */
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
      /** Since when the process has listened without a break. */
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
  /** For what the runner must know beyond the invocation. */
  timeout_seconds: number | null;
  /** Holds the parameters and prompt in place of the invocation's, which are redacted. */
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
  /** The only agent whose runs it is handed; null: any. */
  only_agent: string | null;
  agents: string[];
  status: "online" | "draining" | "lost";
  epoch: number;
  running: number;
  registered_at: string;
  last_seen_at: string;
}

/** An agent as it is listed: defined by a file, put by the API, or brought by a runner. */
export interface ListedAgent {
  agent: Agent;
  source: "file" | "api" | "runner";
  runner_id: string | null;
  /** Who put it, or whose runner it is; null for files. */
  owner: string | null;
  /** What is wrong with its file now, where this is the last definition that was sound. */
  fault?: string | null;
}

/** Why a run waits, in the order they were found. */
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
