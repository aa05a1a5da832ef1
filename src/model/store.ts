import type { AgentOp, AgentResult } from "./agent-ops.ts";
import type { CreateRun } from "./create-run.ts";
import type { DispatchOp, DispatchResult, RunnerIdentity } from "./dispatch-ops.ts";
import type { DispatchReads } from "./dispatch-reads.ts";
import type { NumberedEvent, ResultEvent, StoredEvent } from "./event.ts";
import type { AddUpload, Blobs, FileReads, FileResult } from "./file.ts";
import type { ExecutionEnd, ExecutionStart } from "./execution.ts";
import type { ParkReason } from "./executor.ts";
import type { QuestionOp, QuestionReads, QuestionResult } from "./question.ts";
import type { Demands, Run } from "./run.ts";
import type { ScheduleOp, ScheduleReads, ScheduleResult } from "./schedule-ops.ts";
import type { SaveResult, SaveSession, SessionStateReads } from "./session-state-ops.ts";
import type { SearchMatch } from "./search.ts";
import type { BindSession, DeleteSession, SessionReads, SessionResult } from "./session.ts";
import type { FailureReason, RunStatus, EndedStatus } from "./states.ts";
import type { StatsReads } from "./stats.ts";
import type { TokenOp, TokenReads, TokenResult } from "./token.ts";
import type { HookOp, HookReads, HookResult } from "./hook-ops.ts";

export type { CreateRun } from "./create-run.ts";

/**
 * The interface of the store. An operation is plain data and atomic. All operations of one `apply`, and of every `apply`
 * that waits at the same time, share one transaction, and the promise resolves when it is durable. A conflict is returned
 * as a result; a HostError is thrown.
 *
 * The audit chain consists of execution_started and execution_ended events. Storing one appends it to the chain in the same
 * transaction, whichever operation contains it.
 */
export interface Store {
  apply<const T extends readonly Op[]>(ops: T): Promise<{ [K in keyof T]: ResultOf<T[K]> }>;
  readonly read: Reads;
  readonly blobs: Blobs;
  /** Calls `listener` after each commit, in commit order, until the returned function is called. */
  changes(listener: (change: Change) => void): () => void;
  close(): Promise<void>;
}

export type Op =
  | RunOp
  | DispatchOp
  | TokenOp
  | BindSession
  | DeleteSession
  | SaveSession
  | AddUpload
  | AgentOp
  | QuestionOp
  | ScheduleOp
  | HookOp;
export type RunOp = CreateRun | AppendEvents | FinishRun;

/** The result type of an operation. */
export type ResultOf<O> = O extends RunOp
  ? OpResult
  : O extends { op: infer Name }
    ? Extract<AnyResult, { op: Name }> | ConflictOf<O>
    : never;
/** The result of any operation. */
export type StoreResult = OpResult | AnyResult;
type AnyResult =
  | DispatchResult
  | TokenResult
  | SessionResult
  | SaveResult
  | FileResult
  | AgentResult
  | QuestionResult
  | ScheduleResult
  | HookResult;
type ConflictOf<O> = O extends DispatchOp
  ? Extract<DispatchResult, { ok: false }>
  : O extends TokenOp
    ? Extract<TokenResult, { ok: false }>
    : O extends BindSession | DeleteSession
      ? Extract<SessionResult, { ok: false }>
      : O extends SaveSession
        ? Extract<SaveResult, { ok: false }>
        : O extends AddUpload
          ? Extract<FileResult, { ok: false }>
          : O extends QuestionOp
            ? Extract<QuestionResult, { ok: false }>
            : O extends ScheduleOp
              ? Extract<ScheduleResult, { ok: false }>
              : O extends HookOp
                ? Extract<HookResult, { ok: false }>
                : Extract<AgentResult, { ok: false }>;

/** Hints about what a commit changed. Listeners read the store to find out more. */
export interface Change {
  /** Runs with new events. null: possibly all. */
  runs: ReadonlySet<string> | null;
  /** The demands of runs that became claimable, one entry per run. */
  claimable: readonly Demands[];
  /** The demands of runs that resume after an answer. Runners take these even without a free slot. */
  resumed?: readonly Demands[];
  /** Runners that have a new order. */
  runnersWithOrders: ReadonlySet<string>;
  /** Schedules or their due times changed. */
  schedules?: true;
  /** Another process committed. What it changed is unknown. */
  fromOtherProcess: boolean;
  /** Runs that ended or returned to pending. Only for commits of this process. */
  ended?: readonly RunEnd[];
  requeued?: readonly RequeuedRun[];
}

export interface RunEnd {
  run_id: string;
  created_by: string;
  status: EndedStatus;
  reason: FailureReason | null;
}

export interface RequeuedRun {
  run_id: string;
  /** Whether the requeue counts as a failure of the run. */
  lost: boolean;
}

/** Appends events. Numbers that are already stored are skipped. A gap is rejected and reports the last stored number. */
export interface AppendEvents {
  op: "append_events";
  run_id: string;
  attempt: number;
  events: NumberedEvent[];
  /** Rejected if this runner does not hold the attempt in this epoch. */
  runner?: RunnerIdentity;
}

/** Stores the last events of an attempt and the result event, and finishes the run. */
export interface FinishRun {
  op: "finish_run";
  run_id: string;
  attempt: number;
  at: string;
  events: NumberedEvent[];
  result: ResultEvent;
  /** Keeps the current summary if absent. */
  summary?: string;
  /** Ignored if `runner` is set: the isolation then comes from the execution_ended events. */
  isolation: Run["isolation"];
  runner?: RunnerIdentity;
  /** All events up to this number must be stored; otherwise it is a gap. */
  last_n?: number;
  /**
   * Returns the run to pending instead of finishing it: `at_no_cost` after a drain, `as_failure` after a crash. The latter
   * counts as a failed attempt, and the run finishes with `result` if no attempt is left. A run that was being stopped is
   * cancelled in any case.
   */
  give_back?: "at_no_cost" | "as_failure";
  /**
   * Parks the run, so that it continues later from its saved state at no cost. If its agent does not allow parking, the
   * run finishes with `result`. A run that was being stopped is cancelled.
   */
  parked?: { why: ParkReason; until?: string; message?: string };
}

export type OpResult =
  | { ok: true; last_n: number }
  /** The operation was applied before. Nothing was changed. */
  | { ok: true; last_n: number; repeated: true; run_id?: string }
  | {
      ok: false;
      conflict: "exists" | "not_found" | "fenced" | "finished" | "gap" | "idempotency" | "repeated";
      last_n: number;
    };

export interface Reads
  extends
    DispatchReads,
    SessionReads,
    SessionStateReads,
    TokenReads,
    FileReads,
    QuestionReads,
    StatsReads,
    ScheduleReads,
    HookReads {
  run(run_id: string): Promise<Run | null>;
  /** Without the parameters, prompt and results, which can be megabytes. */
  run_row(run_id: string): Promise<RunRow | null>;
  runs(filter: RunFilter, page: Page): Promise<RunRow[]>;
  /**
   * Runs that contain all words of `text` (see ./search-terms.ts), and where they match. Pass `next` as `before` to get the
   * next page. `indexing`: recent runs may be missing because they are not indexed yet.
   */
  search(
    text: string,
    filter: RunFilter,
    page: Page,
  ): Promise<{ items: FoundRun[]; next: string | null; indexing: boolean }>;
  /**
   * At most `limit` events and about `maxBytes` (default 512 KB). A short page is not the end: compare with
   * `last_position`.
   */
  events(run_id: string, after: number, limit: number, maxBytes?: number): Promise<StoredEvent[]>;
  /** Like `events`, but of all runs in commit order. */
  feed(after: number, limit: number, maxBytes?: number): Promise<StoredEvent[]>;
  /** The `seq` of the run's last event or, for null, the `cursor` of the last event of all runs. 0 if there is none. */
  last_position(run_id: string | null): Promise<number>;
  execution(execution_id: string): Promise<Execution | null>;
  executions(filter: { run_id?: string; open?: boolean }, page: Page): Promise<Execution[]>;
}

export interface RunFilter {
  created_by?: string;
  /** The end of the run_id. Only the newest 100,000 runs are searched. */
  id_suffix?: string;
  agent_name?: string;
  status?: RunStatus[];
  parent_run_id?: string;
  session_id?: string;
  task_id?: string;
  step_id?: string;
  tool_call_id?: string;
  worktree_id?: string;
  repo_sha?: string;
  /** ISO times. `since` is inclusive, `until` exclusive. */
  since?: string;
  until?: string;
}

/** Newest first. `before` is the last run_id (or execution_id) of the previous page. */
export interface Page {
  before?: string;
  limit: number;
  /** For runs and executions: also ends the page at about 512 KB. A short page is then not the end of the list. */
  limitBytes?: boolean;
}

/** A run in a listing, without its parameters, prompt and results. */
export type RunRow = Omit<Run, "parameters" | "prompt" | "result_text" | "result_data">;

/** A search result, with the position of the match. */
export type FoundRun = RunRow & { match: SearchMatch };

/** The audit record of one spawned process: its start and, once it has ended, its end. */
export interface Execution {
  run_id: string;
  attempt: number;
  /** When the start and the end were recorded, on the store's clock. The times inside them are on the runner's clock. */
  received_at: string;
  end_received_at: string | null;
  start: ExecutionStart;
  end: ExecutionEnd | null;
}
