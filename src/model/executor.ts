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
  dirs: { work: string; home: string; tmp: string };
}

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
