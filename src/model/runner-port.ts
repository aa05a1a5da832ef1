import type { Agent } from "./agent.ts";
import type { Correlation } from "./execution.ts";
import type { NumberedEvent } from "./event.ts";
import type { SessionFile, SessionState } from "./session-state.ts";
import type { Decision, Delta, Executor, Invocation, Outcome, UserInput } from "./executor.ts";
import type { StopReason } from "./states.ts";

/**
 * How a runner communicates with the coordinator. `poll` waits for work and orders. `report` ships events
 * and serves as the heartbeat of a busy runner. The port works over HTTP, or in-process for `exec` and `run` without a
 * coordinator. All requests are idempotent.
 */
export interface RunnerPort {
  register(registration: Registration): Promise<RegistrationResult>;
  /** Held open until there is work or an order, for at most 50 s. */
  poll(request: PollRequest, signal: AbortSignal): Promise<PollResponse>;
  report(request: ReportRequest): Promise<ReportResponse>;
  /**
   * Streams one file of a run. A complete upload is stored under its hash and belongs to the attempt; a `file` event then
   * adds it to the run. Rejected if this runner does not hold the attempt.
   */
  upload(request: UploadRequest, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<UploadResponse>;
  /** Which of these sessions no longer exist, so that the runner can remove their directories. */
  sessions(request: { runner_id: string; epoch: number; session_ids: string[] }): Promise<{ gone: string[] }>;
  /** Loads the saved state of a run's session, and the files of its work directory page by page. */
  loadSession(request: LoadSessionRequest): Promise<LoadSessionResponse>;
  /** Atomically stores a session's state and the events it covers. Fenced like a report. */
  saveSession(request: SaveSessionRequest): Promise<SaveSessionResponse>;
  deregister(request: { runner_id: string; epoch: number }): Promise<void>;
}

export interface UploadRequest {
  runner_id: string;
  epoch: number;
  run_id: string;
  attempt: number;
  sha256: string;
  size: number;
}

/** `mismatch`: the content does not match the announced hash and size. Nothing was stored. */
export type UploadResponse = { upload: "stored" | "fenced" | "mismatch" };

interface AttemptRequest {
  runner_id: string;
  epoch: number;
  run_id: string;
  attempt: number;
}

export interface LoadSessionRequest extends AttemptRequest {
  /** Return the files whose paths follow this one, instead of the state. "" starts at the first file. */
  files_after?: string;
}

/** Contents are base64. */
export type LoadSessionResponse =
  | { load: "fenced" }
  | {
      load: "loaded";
      state: (Omit<SessionState, "bytes"> & { bytes: string }) | null;
      files: PortFile[];
      more: boolean;
    };

export interface PortFile {
  path: string;
  type: SessionFile["type"];
  bytes: string;
}

export interface SaveSessionRequest extends AttemptRequest {
  /** The last event that the state covers. */
  n: number;
  /** Events up to `n` that may not have been stored yet. */
  events: NumberedEvent[];
  format: string;
  /** null: store only the files, which are parts of the state in the next save. */
  bytes: string | null;
  portable: boolean;
  /** Changes since the previous save. A null `type` means removed. */
  files: (PortFile | { path: string; type: null })[];
  /** `files` is the complete work directory: remove all other files saved before. */
  all_files?: boolean;
}

/** `gap`: events after `n` and before the first of `events` are missing. `too_large`: nothing was stored. */
export type SaveSessionResponse =
  /** `budget`: the agent's budget for today is used up. The run must park before its next model request. */
  { save: "saved"; budget?: "spent" } | { save: "fenced" | "too_large" } | { save: "gap"; n: number };

export interface Registration {
  protocol: 1;
  /** The runner's secret. A registration with the same key within a lease is the same runner after a restart. */
  runner_key: string;
  /** Unique per registration. A repeated or delayed request with the same id gets the same epoch. */
  registration_id?: string;
  name?: string;
  hostname: string;
  project_dir: string;
  executor_profile: string;
  executor: {
    type: string;
    command?: string;
    module?: string;
    config: Record<string, unknown>;
    /** Absent if the runner does not declare its capabilities. */
    can?: Partial<Executor["can"]>;
  };
  tags: string[];
  require_matching_tags: boolean;
  agents: Agent[];
  slots: number;
  /** The id of the runner's state directory. Any runner with the same state directory can continue its sessions. */
  place_id?: string;
  /** Accepts only runs that demand this runner_id. */
  only_pinned?: boolean;
  /** Accepts only runs of this agent. */
  only_agent?: string;
}

export interface RegistrationResult {
  runner_id: string;
  /** Increases with each registration. Requests with an older epoch are rejected. */
  epoch: number;
  lease_ms: number;
  /** The permanent id of the coordinator's record. Runners use it to keep the sessions of different records apart. */
  store_id: string;
  /** Larger files are rejected. */
  max_file_bytes: number;
  /** A held poll without a keepalive for this long is lost. Absent if the port sends no keepalives. */
  poll_silence_ms?: number;
  /** The longest `hold_ms` of a poll. Absent: the coordinator does not know that field. */
  max_hold_ms?: number;
}

export interface PollRequest {
  runner_id: string;
  epoch: number;
  /**
   * A repeated claim_id gets the same claims. The runner reuses an id until it gets claims for it, which makes idle polls
   * cheap, and picks a new one afterwards and after registering.
   */
  claim_id: string;
  want: number;
  /** How long the poll may be held if there is nothing for it. Absent: as long as the coordinator likes. */
  hold_ms?: number;
  /** Why the runner accepts no runs despite free slots. `GET /runs/{id}/why` shows it. */
  shortage?: string;
  /** The last order that the runner has carried out. */
  ack_order: number;
}

export interface PollResponse {
  claims: Claim[];
  orders: Order[];
}

export interface Claim {
  run_id: string;
  attempt: number;
  invocation: Invocation;
  /** The caller's ids, for the audit log and for child runs. */
  correlation: Correlation;
  attempt_token: string;
}

export type Order = { no: number; run_id: string; attempt: number } & (
  | { stop: StopReason }
  | { answer: { request_id: string; answer: Decision } }
  | { input: UserInput }
);

export interface ReportRequest {
  runner_id: string;
  epoch: number;
  /** Every run this runner had when it received the response to `as_of_claim`. It says nothing about later claims. */
  held: [run_id: string, attempt: number][];
  /**
   * The last claim_id that this runner will not poll with again. null: none since it registered. A claim_id still in use
   * could get more runs after this report was made, and they would count as lost.
   */
  as_of_claim: string | null;
  events: { run_id: string; attempt: number; events: NumberedEvent[] }[];
  /** Best effort: may be dropped at any point. */
  partials: { run_id: string; attempt: number; delta: Delta }[];
  finishes: { run_id: string; attempt: number; last_n: number; outcome: Outcome }[];
}

export interface ReportResponse {
  /** The highest `n` stored without a gap, per attempt. */
  acked: { run_id: string; attempt: number; n: number }[];
  /** Attempts that this runner no longer holds. Nothing that was reported for them was stored. */
  fenced: { run_id: string; attempt: number }[];
  /** Runs that this runner must stop at once. */
  abandon: { run_id: string; attempt: number }[];
  /** Runs whose agent has used up its budget for today. They must park before their next model request. */
  over_budget?: { run_id: string; attempt: number }[];
}
