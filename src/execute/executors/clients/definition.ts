import type { Agent } from "../../../model/agent.ts";
import type { RunEvent } from "../../../model/event.ts";
import type { Invocation } from "../../../model/executor.ts";
import type { Isolation } from "../../../model/process.ts";
import type { FailureReason } from "../../../model/states.ts";

/** All that is special about one agent client: a program that takes a prompt and prints what it does as JSON lines. */
export interface ClientDefinition {
  name: string;
  /** Its usual name on PATH. */
  program: string;
  /** The variable of the runner that names another one. */
  binVariable: string;
  /** What a person does who has not got it. */
  install: string;
  /** Variables of the runner that it gets; a trailing `*` matches any rest. */
  variables: readonly string[];
  can: { resume: boolean; fork: boolean; fork_at_turn?: boolean };
  conversation: ConversationFiles;
  /** Its ids of sessions; anything else is never handed to it. A UUID unless given. */
  sessionShape?: RegExp;
  /** How it is called, and what reads its answer. What it has to read from a file is written into `turn.tmpDir`. */
  prepare(turn: Turn): Prepared | Promise<Prepared>;
}

/** Which of the client's own files are the conversation of a session. Paths are below the folder of its files. */
export interface ConversationFiles {
  /** What the client calls that folder, in HOME. */
  folder: string;
  /** Where the operator has it instead, if anywhere. */
  elsewhere(env: Turn["env"]): string | undefined;
  /** The session's own file, then those that it refers to; none where there is no such session. */
  find(folder: ClientFolder, session: string): Promise<string[]>;
  /** Where the client looks for a file that was saved under this name; null: it gives its files no such names. */
  place(name: string, at: { folder: ClientFolder; session: string; workDir: string }): Promise<string | null>;
  /** Its first turns, as a session of their own; of a client that can do without the rest. */
  cut?(files: readonly ConversationFile[], turns: number): CutConversation;
}

/** A file of a client that holds (a part of) a conversation, by its name alone: where it lies differs between runners. */
export interface ConversationFile {
  name: string;
  bytes: Uint8Array;
}

/** `turns` is how many there are, where that is fewer. */
export type CutConversation = { ok: true; session: string; file: ConversationFile } | { ok: false; turns: number };

/** The folder in which a client keeps its own files. Runs have been in there: no link below it is ever followed. */
export interface ClientFolder {
  /** Of what lies in a folder below it; none where there is no such folder. */
  names(folder: string): Promise<string[]>;
  /** null: there is no plain file. */
  look(path: string): Promise<{ size: number; changedAt: number } | null>;
  /** At most so many bytes from its beginning; null: there is no plain file. */
  read(path: string, maxBytes: number): Promise<Buffer | null>;
  /** Whole or not at all, with the folders above it. */
  write(path: string, bytes: Uint8Array): Promise<void>;
}

export type PermissionMode = NonNullable<Agent["permissions"]>["mode"];

/** One call of a client. */
export interface Turn {
  invocation: Invocation;
  /** Goes through stdin. */
  prompt: string;
  systemPrompt: string | null;
  mode: PermissionMode;
  /** The client's own id of the session to go on from; null for a new one. */
  session: string | null;
  /** Go on from a copy of that session, which stays as it is. */
  fork: boolean;
  /** The profile's. */
  config: Record<string, unknown>;
  workDir: string;
  homeDir: string;
  tmpDir: string;
  /** All that another program prints, run in the work directory on the record. null: there is no such program. */
  linesOf(command: readonly [string, ...string[]]): Promise<string[] | null>;
  /** Its variables as the client will see them. */
  env: Readonly<Record<string, string | undefined>>;
  isRoot: boolean;
}

export interface Prepared {
  args: readonly string[];
  env?: Record<string, string>;
  /** The prompt unless given. */
  stdin?: string;
  reader: Reader;
  /** Of those that share this folder, one starts when the one before has said its first word. */
  startsAloneIn?: string;
  /** Once the process has ended: lines that the client has written elsewhere than into its answer; read like those. */
  lookBack?(): Promise<readonly string[]>;
}

/** Makes events of what one process of a client prints. Pure: it neither waits nor writes. */
export interface Reader {
  /** null: not a message that is known. It must not throw, whatever it gets. */
  read(message: Record<string, unknown>): readonly Said[] | null;
  /** Once the process has ended: what the client itself says of the end. null: it said nothing. */
  conclude(end: { exitCode: number | null; stderr: string }): Conclusion | null;
}

export type Said =
  | Extract<RunEvent, { type: "system" | "assistant" | "tool_use" | "tool_result" | "error" | "usage" }>
  /** The client's own id of the session, as soon as it is known. */
  | { type: "session"; id: string; data?: unknown }
  /** Live only. */
  | { type: "partial"; text: string }
  /** The permission mode, or whoever was asked, did not let it use a tool. */
  | { type: "denied"; tool_use_id: string; tool: string; message?: string };

export type Conclusion =
  | { ok: true; text: string | null; data?: unknown }
  | { ok: false; reason: FailureReason; message: string; text?: string };

/** What a client has to know of the runner it is on. */
export interface ClientHost {
  /** The runner's variables. */
  env: Readonly<Record<string, string | undefined>>;
  isRoot: boolean;
  /** What runs of the profile are isolated by, here and now. */
  isolation(): Promise<Isolation>;
}
