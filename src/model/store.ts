import type { AgentOp, AgentResult } from "./agent-ops.ts";
import type { CreateRun } from "./create-run.ts";
import type { DispatchOp, DispatchResult, RunnerIdentity } from "./dispatch-ops.ts";
import type { DispatchReads } from "./dispatch-reads.ts";
import type { NumberedEvent, RunEvent, StoredEvent } from "./event.ts";
import type { AddUpload, Blobs, FileReads, FileResult } from "./file.ts";
import type { ExecutionEnd, ExecutionStart } from "./execution.ts";
import type { ParkReason } from "./executor.ts";
import type { QuestionOp, QuestionReads, QuestionResult } from "./question.ts";
import type { Demands, Run } from "./run.ts";
import type { ScheduleOp, ScheduleReads, ScheduleResult } from "./schedule-ops.ts";
import type { SaveResult, SaveSession, SessionStateReads } from "./session-state-ops.ts";
import type { SearchMatch } from "./search.ts";
import type { BindSession, DeleteSession, SessionReads, SessionResult } from "./session.ts";
import type { FailureReason, RunStatus, TerminalStatus } from "./states.ts";
import type { StatsReads } from "./stats.ts";
import type { TokenOp, TokenReads, TokenResult } from "./token.ts";
import type { TriggerOp, TriggerReads, TriggerResult } from "./trigger-ops.ts";

export type { CreateRun } from "./create-run.ts";

/**
 * Seam 4, store. An operation is plain data and stands or falls as a whole; all operations of one
 * `apply`, and of every `apply` that waits at the same moment, share one transaction. The promise
 * resolves when that transaction is durable. A conflict is a result; a throw is a HostError.
 *
 * execution_started and execution_ended events are what is audited: storing one appends it to the
 * audit chain in the same transaction, whichever operation brought it.
 */
export interface Store {
  apply<const T extends readonly Op[]>(ops: T): Promise<{ [K in keyof T]: ResultOf<T[K]> }>;
  readonly read: Reads;
  readonly blobs: Blobs;
  /** Calls back after each commit of this store, in the order of commits, until the returned function is called. */
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
  | TriggerOp;
export type RunOp = CreateRun | AppendEvents | FinishRun;

/** What an operation is answered with. */
export type ResultOf<O> = O extends RunOp
  ? OpResult
  : O extends { op: infer Name }
    ? Extract<AnyResult, { op: Name }> | ConflictOf<O>
    : never;
/** Of any operation at all. */
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
  | TriggerResult;
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
              : O extends TriggerOp
                ? Extract<TriggerResult, { ok: false }>
                : Extract<AgentResult, { ok: false }>;

/** What one commit changed that somebody may be waiting for. A hint: whoever gets it looks at the store. */
export interface Change {
  /** Runs whose log has grown; null: any may have. */
  runs: ReadonlySet<string> | null;
  /** What became free to claim, one entry for each run. */
  claimable: readonly Demands[];
  /** The same of runs that go on after an answer: runners take these even without a free slot. */
  resumed?: readonly Demands[];
  /** Runners that have a new order. */
  ordered: ReadonlySet<string>;
  /** Schedules, or when they are due next. */
  schedules?: true;
  /** Another process wrote: what it was is not known. */
  foreign: boolean;
  /** Runs that ended, and those that went back to pending; of this process's own commits alone. */
  ended?: readonly RunEnd[];
  requeued?: readonly Requeued[];
}

export interface RunEnd {
  run_id: string;
  created_by: string;
  status: TerminalStatus;
  reason: FailureReason | null;
}

export interface Requeued {
  run_id: string;
  /** It counts as a failure of the run; else it was given back at no cost. */
  lost: boolean;
}

/** Already stored `n` are skipped; a gap is refused and reports the last one stored. */
export interface AppendEvents {
  op: "append_events";
  run_id: string;
  attempt: number;
  events: NumberedEvent[];
  /** Who writes: refused where the attempt is not this runner's in this epoch. */
  runner?: RunnerIdentity;
}

/** The last events of an attempt, then the result event, and the run's final columns. */
export interface FinishRun {
  op: "finish_run";
  run_id: string;
  attempt: number;
  at: string;
  events: NumberedEvent[];
  result: Extract<RunEvent, { type: "result" }>;
  /** Left as it is where not given. */
  summary?: string;
  /** Where a runner writes, what its execution_ended events said stands instead. */
  isolation: Run["isolation"];
  runner?: RunnerIdentity;
  /** Everything up to it must be stored by then; a gap otherwise. */
  last_n?: number;
  /**
   * What its runner could not bring to an end goes back to pending instead: `at_no_cost` after a drain,
   * `as_failure` after a crash, which counts and leaves `result` standing where no attempt is left.
   * A run that was being stopped is cancelled in any case.
   */
  give_back?: "at_no_cost" | "as_failure";
  /**
   * Nothing of it is alive, and it continues later: at no cost, from what it has saved. `result` stands instead where
   * its agent does not want that, and a run that was being stopped is cancelled.
   */
  parked?: { why: ParkReason; until?: string; message?: string };
}

export type OpResult =
  | { ok: true; last_n: number }
  /** The same thing was stored before: nothing was changed. */
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
    TriggerReads {
  run(run_id: string): Promise<Run | null>;
  /** Its parameters, prompt and result may be megabytes: most callers need only the row. */
  run_row(run_id: string): Promise<RunRow | null>;
  runs(filter: RunFilter, page: Page): Promise<RunRow[]>;
  /**
   * Runs with all words of `text`, see ./search-terms.ts, and where. The pages of a search are its own: `next` is what to
   * pass as `before`. `indexing`: runs may be missing that the index has not taken in yet.
   */
  search(
    text: string,
    filter: RunFilter,
    page: Page,
  ): Promise<{ items: FoundRun[]; next: string | null; indexing: boolean }>;
  /** At most `limit`, and fewer where they are long: about `maxBytes`, 512 KB unless given. There may be more even so, up to `last_position`. */
  events(run_id: string, after: number, limit: number, maxBytes?: number): Promise<StoredEvent[]>;
  /** The same of all runs, in commit order. */
  feed(after: number, limit: number, maxBytes?: number): Promise<StoredEvent[]>;
  /** The `seq` of the last event of this run, or the cursor of the last one of all that are kept (null); 0 without any. */
  last_position(run_id: string | null): Promise<number>;
  execution(execution_id: string): Promise<Execution | null>;
  executions(filter: { run_id?: string; open?: boolean }, page: Page): Promise<Execution[]>;
}

export interface RunFilter {
  created_by?: string;
  agent_name?: string;
  status?: RunStatus[];
  parent_run_id?: string;
  session_id?: string;
  task_id?: string;
  step_id?: string;
  tool_call_id?: string;
  worktree_id?: string;
  repo_sha?: string;
  /** ISO times, inclusive and exclusive. */
  since?: string;
  until?: string;
}

/** Newest first; `before` is the last run_id (or execution_id) of the page before. */
export interface Page {
  before?: string;
  limit: number;
}

/** What a list shows: a run without its parameters, prompt and results. */
export type RunRow = Omit<Run, "parameters" | "prompt" | "result_text" | "result_data">;

/** With where it matches what was searched for. */
export type FoundRun = RunRow & { match: SearchMatch };

/** The audit record of one spawned process: its start and, once there is one, its end. */
export interface Execution {
  run_id: string;
  attempt: number;
  /** When the start and the end were recorded, by the store's clock; the times in them are by the runner's. */
  received_at: string;
  end_received_at: string | null;
  start: ExecutionStart;
  end: ExecutionEnd | null;
}
