import type { Agent } from "../../../model/agent.ts";
import type { RunEvent } from "../../../model/event.ts";
import type { Invocation } from "../../../model/executor.ts";
import type { Isolation } from "../../../model/process.ts";
import type { FailureReason } from "../../../model/states.ts";
import type { Environment } from "../../../model/environment.ts";

/** Everything specific to one agent client: a program that takes a prompt and prints its progress as JSON lines. */
export interface ClientDefinition {
  name: string;
  /** The program's usual name on PATH. */
  program: string;
  /** The runner's variable that overrides the program. */
  binVariable: string;
  /** How to install it. */
  install: string;
  /** The runner's variables that it receives. A trailing `*` matches any suffix. */
  variables: readonly string[];
  can: { resume: boolean; fork: boolean; fork_at_turn?: boolean };
  conversation: ConversationFiles;
  /** The pattern of its session ids; a UUID by default. Other ids are never passed to it. */
  sessionShape?: RegExp;
  /** Builds the command line and the reader of its output. Files for the client are written to `turn.tmpDir`. */
  prepare(turn: Turn): PreparedTurn | Promise<PreparedTurn>;
}

/** Locates the client's own files with a session's conversation. Paths are relative to the client's directory. */
export interface ConversationFiles {
  /** The name of the client's directory in HOME. */
  directory: string;
  /** Another path for that directory, if the operator has configured one. */
  overridePath(env: Turn["env"]): string | undefined;
  /** Returns the session's own file, then the files it refers to. Returns none for an unknown session. */
  find(directory: ClientDirectory, session: string): Promise<string[]>;
  /** Returns the path where the client expects a file with this name; null if the client never uses such a name. */
  locate(
    name: string,
    location: { directory: ClientDirectory; session: string; workDir: string },
  ): Promise<string | null>;
  /** Returns the first turns as a new session, if the client supports that. */
  cut?(files: readonly ConversationFile[], turns: number): CutConversation;
}

/** A client's file with a conversation or a part of one. It has no path, because paths differ between runners. */
export interface ConversationFile {
  name: string;
  bytes: Uint8Array;
}

/** If the conversation is too short, `turns` is the number of turns it has. */
export type CutConversation = { ok: true; session: string; file: ConversationFile } | { ok: false; turns: number };

/** The directory in which a client keeps its own files. Runs can write to it, so links below it are never followed. */
export interface ClientDirectory {
  /** Returns the names in a directory; none if it does not exist. */
  listNames(directory: string): Promise<string[]>;
  /** Returns null if the path is not a regular file. */
  stat(path: string): Promise<{ size: number; changedAt: number } | null>;
  /** Reads at most `maxBytes` from the start; returns null if the path is not a regular file. */
  read(path: string, maxBytes: number): Promise<Buffer | null>;
  /** Writes the file atomically and creates its parent directories. */
  write(path: string, bytes: Uint8Array): Promise<void>;
}

export type PermissionMode = NonNullable<Agent["permissions"]>["mode"];

/** One call to a client. */
export interface Turn {
  invocation: Invocation;
  /** Passed through stdin. */
  prompt: string;
  systemPrompt: string | null;
  mode: PermissionMode;
  /** The client's own id of the session to continue; null for a new one. */
  session: string | null;
  /** Continue a copy of that session and leave the original unchanged. */
  fork: boolean;
  /** The profile's config. */
  config: Record<string, unknown>;
  workDir: string;
  homeDir: string;
  tmpDir: string;
  /** Runs another program in the work directory and returns its lines. Returns null if the program does not exist. */
  outputLines(command: readonly [string, ...string[]]): Promise<string[] | null>;
  /** The client's environment variables. */
  env: Environment;
  isRoot: boolean;
}

export interface PreparedTurn {
  args: readonly string[];
  env?: Record<string, string>;
  /** The prompt by default. */
  stdin?: string;
  reader: Reader;
  /** Clients that share this directory start one at a time. Each waits until the previous one prints its first line. */
  exclusiveStartIn?: string;
  /** Called after the process exits. Returns lines that the client wrote elsewhere, to be read like its output. */
  readAfterExit?(): Promise<readonly string[]>;
}

/** Turns the output of one client process into messages. It does no I/O. */
export interface Reader {
  /** Returns null for an unknown message. It must not throw on any input. */
  read(message: Record<string, unknown>): readonly ClientMessage[] | null;
  /**
   * Called after the process exits. Returns the result that the client itself reported, or null if it reported none.
   */
  conclude(end: { exitCode: number | null; stderr: string }): Conclusion | null;
}

export type ClientMessage =
  | Extract<RunEvent, { type: "system" | "assistant" | "tool_use" | "tool_result" | "error" | "usage" }>
  /** The client's own session id, sent as soon as the client reports it. */
  | { type: "session"; id: string; data?: unknown }
  /** Streamed text that is shown live and not stored. */
  | { type: "partial"; text: string }
  /** The permission mode or a person denied a tool call. */
  | { type: "denied"; tool_use_id: string; tool: string; message?: string };

export type Conclusion =
  | { ok: true; text: string | null; data?: unknown }
  | { ok: false; reason: FailureReason; message: string; text?: string };

/** The properties of the runner that clients depend on. */
export interface ClientHost {
  /** The runner's variables. */
  env: Environment;
  isRoot: boolean;
  /** The isolation that runs of this profile currently have. */
  isolation(): Promise<Isolation>;
}
