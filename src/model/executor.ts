import type { Agent } from "./agent.ts";
import type { RunEvent, Usage } from "./event.ts";
import type { Command, Running } from "./process.ts";
import type { runModes } from "./demands.ts";
import type { FailureReason } from "./states.ts";
import type { Effect } from "./tool.ts";

/**
 * Seam 2, executor: turns an Invocation into events and exactly one Outcome.
 * Rejects only on bugs; everything expected is an Outcome.
 */
export interface Executor {
  readonly name: string;
  /**
   * `state`: it saves the state of its sessions, so that other runners can continue them. `park`: it can end while it
   * waits for an answer, a budget or a usage limit, and continue from that state later. `fork_at_turn`: it can fork a
   * session at an earlier turn.
   */
  readonly can: {
    resume: boolean;
    fork: boolean;
    ask: boolean;
    input: boolean;
    state?: boolean;
    park?: boolean;
    fork_at_turn?: boolean;
  };
  /** Variables of the runner that its processes get beside the base list; a trailing `*` matches any rest. */
  readonly variables?: readonly string[];
  run(invocation: Invocation, context: RunContext): Promise<Outcome>;
}

export interface Invocation {
  schema_version: 1;
  run_id: string;
  attempt: number;
  mode: (typeof runModes)[number];
  session_id: string;
  /** An earlier attempt of this run saved the session's state: the run continues from there, whatever its mode. */
  continues: boolean;
  /** The executor's own id of the session it is to continue; null for a start. */
  executor_session_id: string | null;
  /** The session a fork began from, whose work directory and HOME it gets a copy of; null otherwise. */
  forked_from: string | null;
  /**
   * A fork keeps this many turns of that session, from its beginning: a turn is a message of the user with everything
   * up to the answer to it. null: all of them.
   */
  fork_at_turn: number | null;
  agent: Agent;
  parameters: Record<string, unknown>;
  prompt: string | null;
  project_dir: string | null;
  attended: boolean;
  /**
   * What people decided about questions of earlier attempts of this run. An answer is for the question it was given to:
   * the same `request_id` with another tool or input is another question.
   */
  answers: { request_id: string; tool: string; input: unknown; answer: Decision }[];
  /**
   * What people said to earlier attempts of this run. `RunContext.input` begins with these. An executor that continues
   * from a saved state skips those that the state covers.
   */
  inputs: UserInput[];
  /** Tools that somebody has allowed for the rest of the session. */
  granted_tools: string[];
  executor_config: Record<string, unknown>;
}

export interface RunContext {
  /** Its reason is a StopReason. */
  signal: AbortSignal;
  /**
   * Aborted when the agent has spent what it may spend today. The executor asks its model no more: it saves its state
   * and returns the outcome `parked` with why `budget`. A run whose executor cannot park is stopped instead.
   */
  overBudget: AbortSignal;
  /** Ordered, with backpressure. */
  emit(event: RunEvent): Promise<void>;
  /** Live only, never stored. */
  partial(delta: Delta): void;
  /** Waits for a person where the run is attended; denied at once where it is not. `park` only where the executor can. */
  ask(question: Question): Promise<Answer>;
  input: AsyncIterable<UserInput>;
  /** execution_started is durable before the spawn, execution_ended follows the end. */
  start(command: Command): Promise<Running>;
  /**
   * For the process that an executor itself runs in. It gets the runner's own variables, and is killed only when a
   * stopped run's grace is over.
   */
  startHost(command: Command): Promise<Running>;
  usage(usage: Usage): void;
  /** Uploads these and puts them on the record, all of them or none. */
  keepFiles(files: readonly FoundFile[]): Promise<FilesKept>;
  /** The state of the run's session, kept in the record. */
  session: {
    /**
     * What the run continues from; null where there is none. `here`: it was saved in this place, so that what the
     * executor keeps beside it on this runner is as new, or newer.
     */
    load(): Promise<{ format: string; bytes: Uint8Array; here: boolean } | null>;
    /** Records these events and saves the state that covers them and all before, all or nothing. At most 64 MiB. */
    save(format: string, bytes: Uint8Array, more?: SessionSave): Promise<void>;
  };
  dirs: { work: string; home: string; tmp: string };
  /** The parent of the `profiles/` folder: where an executor finds the programs and files that come with it. */
  runnerDirectory: string;
}

export interface SessionSave {
  events?: readonly RunEvent[];
  /** The work directory may have changed, and is saved too where it is the session's own. */
  files?: boolean;
  /** The state lacks something that only this runner has: no other can continue from it. */
  stays?: boolean;
  /** Nothing is saved after it: it is made even where the run was stopped, unless its runner ends or lost it. */
  last?: boolean;
}

/** A file a run leaves, opened so that no link leads elsewhere. */
export interface FoundFile {
  /** As people see it: relative to the work directory, with slashes. */
  path: string;
  size: number;
  /** A new handle each time; the caller closes it. */
  open(): Promise<OpenFile>;
}

/** As much of a file handle as reading it takes. */
export interface OpenFile {
  read(into: { buffer: Uint8Array; position: number }): Promise<{ bytesRead: number }>;
  stat(): Promise<{ size: number }>;
  close(): Promise<void>;
}

export type FilesKept = { ok: true; files: { path: string; sha256: string }[] } | { ok: false; message: string };

export interface Delta {
  kind: "assistant" | "output";
  text: string;
}

export interface Question {
  /** The same again after the run was continued: whoever decided does not decide twice. */
  request_id: string;
  tool: string;
  input: unknown;
  effect?: Effect | undefined;
  /** JSON Schema that edited input has to fit. */
  input_schema?: Record<string, unknown> | undefined;
}

/** What a person decides. */
export type Decision =
  | { decision: "allow"; input?: unknown; remember?: "session" }
  | { decision: "deny"; message?: string }
  | { decision: "stop"; message?: string };

/** `park`: nobody has decided yet. The executor saves its state and returns the outcome `parked` with why `approval`. */
export type Answer = Decision | { decision: "park" };

export interface UserInput {
  text: string;
  /** Of its event in the run's log. It grows with each input, so the highest one heard tells an executor what it knows. */
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
  | Parked;

/** The run continues later, from its saved state. `until`: no sooner than then, as ISO 8601 in UTC. */
export interface Parked {
  status: "parked";
  why: ParkReason;
  until?: string;
  message?: string;
}

export const parkReasons = ["approval", "budget", "usage_limit"] as const;
export type ParkReason = (typeof parkReasons)[number];
