import type { Agent } from "./agent.ts";
import type { RunEvent, Usage } from "./event.ts";
import type { Command, Running } from "./process.ts";
import type { runModes } from "./run.ts";
import type { FailureReason } from "./states.ts";

/**
 * Seam 2, executor: turns an Invocation into events and exactly one Outcome.
 * Rejects only on bugs; everything expected is an Outcome.
 */
export interface Executor {
  readonly name: string;
  readonly can: { resume: boolean; fork: boolean; ask: boolean; input: boolean };
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
  /** The executor's own id of the session it is to continue; null for a start. */
  executor_session_id: string | null;
  /** The session a fork began from, whose work directory and HOME it gets a copy of; null otherwise. */
  forked_from: string | null;
  agent: Agent;
  parameters: Record<string, unknown>;
  prompt: string | null;
  project_dir: string | null;
  attended: boolean;
  executor_config: Record<string, unknown>;
}

export interface RunContext {
  /** Its reason is a StopReason. */
  signal: AbortSignal;
  /** Ordered, with backpressure. */
  emit(event: RunEvent): Promise<void>;
  /** Live only, never stored. */
  partial(delta: Delta): void;
  /** A run nobody attends is denied at once. */
  ask(question: Question): Promise<Answer>;
  input: AsyncIterable<UserInput>;
  /** execution_started is durable before the spawn, execution_ended follows the end. */
  start(command: Command): Promise<Running>;
  usage(usage: Usage): void;
  /** Uploads these and puts them on the record, all of them or none. */
  keepFiles(files: readonly FoundFile[]): Promise<FilesKept>;
  dirs: { work: string; home: string; tmp: string };
  /** The parent of the `profiles/` folder: where an executor finds the programs and files that come with it. */
  runnerDirectory: string;
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
  request_id: string;
  tool: string;
  input: unknown;
}

export type Answer =
  | { decision: "allow"; input?: unknown; remember?: boolean }
  | { decision: "deny"; message?: string }
  | { decision: "stop" };

export interface UserInput {
  text: string;
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
  | { status: "parked"; why: "usage_limit" | "budget"; until?: string };
