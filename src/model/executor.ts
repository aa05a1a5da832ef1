import type { Agent } from "./agent.ts";
import type { RunEvent, Usage } from "./event.ts";
import type { Command, RunningProcess } from "./process.ts";
import type { runModes } from "./demands.ts";
import type { FailureReason } from "./states.ts";
import type { Effect } from "./tool.ts";

/**
 * The interface of an executor, which turns an Invocation into events and exactly one Outcome. `run` rejects only on bugs;
 * every expected failure is an Outcome.
 */
export interface Executor {
  readonly name: string;
  /** The capabilities of the executor. Registrations and profiles contain them under the same names. */
  readonly can: {
    /** Continue a session in another run. */
    resume: boolean;
    /** Start a new session as a copy of another one. */
    fork: boolean;
    /** Ask a person questions during a run. */
    ask: boolean;
    /** Accept messages from users during a run. */
    input: boolean;
    /** Save session state, so that other runners can continue the session. */
    state?: boolean;
    /** Exit while waiting for an answer, a budget or a usage limit, and continue from the saved state later. */
    park?: boolean;
    /** Fork a session at an earlier turn. */
    fork_at_turn?: boolean;
  };
  /**
   * Names of environment variables that the executor's processes inherit from the runner, in addition to the default ones.
   * A trailing `*` matches a prefix.
   */
  readonly variables?: readonly string[];
  run(invocation: Invocation, context: RunContext): Promise<Outcome>;
}

export interface Invocation {
  schema_version: 1;
  run_id: string;
  attempt: number;
  mode: (typeof runModes)[number];
  session_id: string;
  /** An earlier attempt of this run saved session state. The run continues from it, whatever its mode. */
  continues: boolean;
  /** The executor's id of the session to continue. null for a new session. */
  executor_session_id: string | null;
  /** The session this one was forked from. The fork starts with a copy of its work directory and HOME. */
  forked_from: string | null;
  /**
   * How many turns the fork keeps, counted from the start of the session. null: all. A turn is a user message and
   * everything up to the answer to it.
   */
  fork_at_turn: number | null;
  agent: Agent;
  parameters: Record<string, unknown>;
  prompt: string | null;
  project_dir: string | null;
  attended: boolean;
  /**
   * Decisions on questions that earlier attempts of this run asked. An answer applies only to the same question: the
   * same `request_id` with another tool or input is a different question.
   */
  answers: { request_id: string; tool: string; input: unknown; answer: Decision }[];
  /**
   * User input that earlier attempts of this run received. `RunContext.input` starts with it. An executor that continues
   * from saved state skips the input that the state already covers.
   */
  inputs: UserInput[];
  /** Tools that a person has allowed for the rest of the session. */
  granted_tools: string[];
  executor_config: Record<string, unknown>;
}

export interface RunContext {
  /** The abort reason is a StopReason. */
  signal: AbortSignal;
  /**
   * Aborted when the agent has used up its budget for today. The executor then makes no more model requests, saves its
   * state and returns the outcome `parked` with `why: "budget"`. If it cannot park, the run is stopped instead.
   */
  overBudget: AbortSignal;
  /** Records an event. Events keep their order. Waits while too many earlier events are pending. */
  emit(event: RunEvent): Promise<void>;
  /** Sends text to live viewers only. It is never stored. */
  partial(delta: Delta): void;
  /**
   * Waits for a person if the run is attended, and denies at once if it is not. Answers `park` only if the executor can
   * park.
   */
  ask(question: Question): Promise<Answer>;
  input: AsyncIterable<UserInput>;
  /** Stores execution_started before the spawn, and execution_ended after the exit. */
  start(command: Command): Promise<RunningProcess>;
  /**
   * Starts the process that the executor itself runs in. It gets the runner's own variables, and is killed only after the
   * grace period of a stopped run.
   */
  startHost(command: Command): Promise<RunningProcess>;
  /** Reports the tokens and the cost of one turn. */
  usage(usage: Usage): void;
  /** Uploads and records all of these files, or none. */
  keepFiles(files: readonly FoundFile[]): Promise<KeepFilesResult>;
  /** The state of the run's session, stored in the record. */
  session: {
    /**
     * The state to continue from, or null. `here` is true if a runner with this state directory saved the state, so the
     * executor's local files are at least as recent.
     */
    load(): Promise<{ format: string; bytes: Uint8Array; here: boolean } | null>;
    /** Atomically records these events and saves a state that covers all events so far. At most 64 MiB. */
    save(format: string, bytes: Uint8Array, options?: SaveOptions): Promise<void>;
  };
  dirs: { work: string; home: string; tmp: string };
  /** The directory that contains `profiles/`, and the programs and files of executors. */
  runnerDirectory: string;
}

export interface SaveOptions {
  events?: readonly RunEvent[];
  /** The work directory may have changed. It is saved too if it belongs to the session. */
  files?: boolean;
  /** The state depends on something that only this runner has, so no other runner can continue from it. */
  stays?: boolean;
  /** The final save. It happens even if the run was stopped, unless the runner is shutting down or has lost the run. */
  last?: boolean;
}

/** A file that a run produced. Opening it does not follow links. */
export interface FoundFile {
  /** Relative to the work directory, with slashes. */
  path: string;
  size: number;
  /** Returns a new handle each time. The caller closes it. */
  open(): Promise<OpenFile>;
}

/** The part of a file handle that reading needs. */
export interface OpenFile {
  read(into: { buffer: Uint8Array; position: number }): Promise<{ bytesRead: number }>;
  stat(): Promise<{ size: number }>;
  close(): Promise<void>;
}

export type KeepFilesResult = { ok: true; files: { path: string; sha256: string }[] } | { ok: false; message: string };

export interface Delta {
  kind: "assistant" | "output";
  text: string;
}

export interface Question {
  /** Stays the same when the run continues, so that a person decides only once. */
  request_id: string;
  tool: string;
  input: unknown;
  effect?: Effect | undefined;
  /** JSON Schema for edited input. */
  input_schema?: Record<string, unknown> | undefined;
}

/** A person's decision. */
export type Decision =
  | { decision: "allow"; input?: unknown; remember?: "session" }
  | { decision: "deny"; message?: string }
  | { decision: "stop"; message?: string };

/**
 * `park`: there is no decision yet. The executor saves its state and returns the outcome `parked` with `why: "approval"`.
 */
export type Answer = Decision | { decision: "park" };

export interface UserInput {
  text: string;
  /** The `seq` of its event in the run's log. An executor skips input up to the highest seq it has processed. */
  seq: number;
}

export type Outcome =
  | { status: "completed"; exit_code: number | null; text: string | null; data?: unknown }
  | {
      status: "failed";
      reason: FailureReason;
      message: string;
      exit_code: number | null;
      text?: string;
      data?: unknown;
    }
  | { status: "cancelled"; by: "user" | "shutdown" }
  | ParkedOutcome;

/** The run continues later from its saved state, not before `until` (ISO 8601, UTC). */
export interface ParkedOutcome {
  status: "parked";
  why: ParkReason;
  until?: string;
  message?: string;
}

export const parkReasons = ["approval", "budget", "usage_limit"] as const;
export type ParkReason = (typeof parkReasons)[number];
