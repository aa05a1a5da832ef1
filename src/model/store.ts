import type { NumberedEvent, RunEvent, StoredEvent } from "./event.ts";
import type { ExecutionEnd, ExecutionStart } from "./execution.ts";
import type { Run } from "./run.ts";
import type { RunStatus } from "./states.ts";

/**
 * Seam 4, store. An operation is plain data and stands or falls as a whole; all operations of one
 * `apply`, and of every `apply` that waits at the same moment, share one transaction. The promise
 * resolves when that transaction is durable. A conflict is a result; a throw is a HostError.
 *
 * execution_started and execution_ended events are what is audited: storing one appends it to the
 * audit chain in the same transaction, whichever operation brought it.
 */
export interface Store {
  apply<const T extends readonly Op[]>(ops: T): Promise<{ [K in keyof T]: OpResult }>;
  readonly read: Reads;
  close(): Promise<void>;
}

export type Op = CreateRun | AppendEvents | FinishRun;

/** A new run, in the state its first events leave it in. */
export interface CreateRun {
  op: "create_run";
  run: Run;
  events: NumberedEvent[];
}

/** Already stored `n` are skipped; a gap is refused and reports the last one stored. */
export interface AppendEvents {
  op: "append_events";
  run_id: string;
  attempt: number;
  events: NumberedEvent[];
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
  isolation: Run["isolation"];
}

export type OpResult =
  | { ok: true; last_n: number }
  /** The same thing was stored before: nothing was changed. */
  | { ok: true; last_n: number; repeated: true }
  | { ok: false; conflict: "exists" | "not_found" | "fenced" | "finished" | "gap"; last_n: number };

export interface Reads {
  run(run_id: string): Promise<Run | null>;
  runs(filter: RunFilter, page: Page): Promise<RunRow[]>;
  events(run_id: string, after: number, limit: number): Promise<StoredEvent[]>;
  /** All runs, in commit order. */
  feed(after: number, limit: number): Promise<StoredEvent[]>;
  execution(execution_id: string): Promise<Execution | null>;
  executions(filter: { run_id?: string; open?: boolean }, page: Page): Promise<Execution[]>;
}

export interface RunFilter {
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

/** The audit record of one spawned process: its start and, once there is one, its end. */
export interface Execution {
  run_id: string;
  attempt: number;
  start: ExecutionStart;
  end: ExecutionEnd | null;
}
