import type { Agent } from "./agent.ts";
import type { Correlation } from "./execution.ts";
import type { NumberedEvent } from "./event.ts";
import type { SessionFile, SessionState } from "./session-state.ts";
import type { Decision, Delta, Executor, Invocation, Outcome, UserInput } from "./executor.ts";
import type { StopReason } from "./states.ts";

/**
 * Seam 3, runner port: how a runner and whoever keeps the journal talk. Two lanes: `poll` waits for
 * work and orders, `report` ships what happened and is the heartbeat of a busy runner. Over HTTP, or
 * in process for `exec` and `run` without a coordinator. A request sent twice has the effect of one.
 */
export interface RunnerPort {
  register(registration: Registration): Promise<Registered>;
  /** Held open until there is something, at most 50 s. */
  poll(request: PollRequest, signal: AbortSignal): Promise<PollAnswer>;
  report(request: ReportRequest): Promise<ReportAnswer>;
  /**
   * One file of a run, streamed. It is kept under its hash, and belongs to the attempt, only when whole; a `file` event then
   * makes it a file of the run. Refused where the attempt is not this runner's.
   */
  upload(request: UploadRequest, content: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<UploadAnswer>;
  /** Which of these sessions, that the runner keeps folders for, are no more. */
  sessions(request: { runner_id: string; epoch: number; session_ids: string[] }): Promise<{ gone: string[] }>;
  /** What the executor of a run continues its session from, and the files of its work directory a page at a time. */
  loadSession(request: LoadSessionRequest): Promise<LoadSessionAnswer>;
  /** Stores the state of a run's session with the events it covers, all or nothing. Refused as a report would be. */
  saveSession(request: SaveSessionRequest): Promise<SaveSessionAnswer>;
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

/** `mismatch`: what came is not what was announced; nothing was kept. */
export type UploadAnswer = { upload: "stored" | "fenced" | "mismatch" };

interface OfAttempt {
  runner_id: string;
  epoch: number;
  run_id: string;
  attempt: number;
}

export interface LoadSessionRequest extends OfAttempt {
  /** The files whose paths follow this one, in place of the state; "" for the first ones. */
  files_after?: string;
}

/** Contents are written in base64. */
export type LoadSessionAnswer =
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

export interface SaveSessionRequest extends OfAttempt {
  /** The last event that the state covers. */
  n: number;
  /** Those up to `n` that may not have been stored yet. */
  events: NumberedEvent[];
  format: string;
  /** null: these are parts of a state that is saved next, and nothing else is stored. */
  bytes: string | null;
  portable: boolean;
  /** What changed since the save before; `type` null: removed. */
  files: (PortFile | { path: string; type: null })[];
  /** Other files of the work directory that were saved before are removed. */
  all_files?: boolean;
}

/** `gap`: events before the first of `events` are missing, those after `n`. `too_large`: nothing was stored. */
export type SaveSessionAnswer =
  /** `budget`: what its agent may spend today is spent. The run parks before it asks its model again. */
  { save: "saved"; budget?: "spent" } | { save: "fenced" | "too_large" } | { save: "gap"; n: number };

export interface Registration {
  protocol: 1;
  /** The runner's own secret identity: the same key within a lease is the same runner, restarted. */
  runner_key: string;
  /** New with each registration: the same again, sent twice or late, is the same registration and has the same epoch. */
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
    /** What it can do. Absent where the runner does not say. */
    can?: Partial<Executor["can"]>;
  };
  tags: string[];
  require_matching_tags: boolean;
  agents: Agent[];
  slots: number;
  /** Its state directory: sessions made by one runner of a place go on with any other of it. */
  place_id?: string;
  /** It takes only runs that demand it by its id. */
  only_pinned?: boolean;
  /** Runs of this agent alone are handed to it. */
  only_agent?: string;
}

export interface Registered {
  runner_id: string;
  /** Grows with each registration; requests of an older epoch are refused. */
  epoch: number;
  lease_ms: number;
  /** Of the record behind the coordinator, for ever the same: what a runner keeps for one is not another's to judge. */
  store_id: string;
  /** Larger files are refused. */
  max_file_bytes: number;
  /** Nothing was heard of a held poll for so long: it is lost. Absent where one says nothing until it is answered. */
  poll_silence_ms?: number;
}

export interface PollRequest {
  runner_id: string;
  epoch: number;
  /**
   * The same claim_id is answered with the same claims. One that was answered without any is polled with again, which
   * costs the other side next to nothing; another follows after claims, and after registering.
   */
  claim_id: string;
  want: number;
  /** Why it wants no run although it has free slots: `GET /runs/{id}/why` repeats it. */
  shortage?: string;
  /** Orders up to this number have been carried out. */
  ack_order: number;
}

export interface PollAnswer {
  claims: Claim[];
  orders: Order[];
}

export interface Claim {
  run_id: string;
  attempt: number;
  invocation: Invocation;
  /** The caller's own ids, for the audit and for what the run starts. */
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
  /** Everything this runner holds, complete as of the answer to `as_of_claim`: a report made earlier proves nothing about later claims. */
  held: [run_id: string, attempt: number][];
  /**
   * The last claim that this runner will not poll with again; null: none since it registered. One that is still polled
   * with may be given runs after the report was made, which would then count as lost.
   */
  as_of_claim: string | null;
  events: { run_id: string; attempt: number; events: NumberedEvent[] }[];
  /** Best effort: may be dropped anywhere on the way. */
  partials: { run_id: string; attempt: number; delta: Delta }[];
  finishes: { run_id: string; attempt: number; last_n: number; outcome: Outcome }[];
}

export interface ReportAnswer {
  /** Highest n stored without a gap, per attempt. */
  acked: { run_id: string; attempt: number; n: number }[];
  /** Attempts that are no longer this runner's: nothing of them was stored. */
  fenced: { run_id: string; attempt: number }[];
  /** Runs this runner holds but should end at once. */
  abandon: { run_id: string; attempt: number }[];
  /** Runs whose agent has spent what it may spend today: they park before they ask their model again. */
  over_budget?: { run_id: string; attempt: number }[];
}
