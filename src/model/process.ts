import type { Readable, Writable } from "node:stream";
import type { ErrorCode } from "./errors.ts";
import type { StopReason } from "./states.ts";

/**
 * Seam 1, process: nothing in Drover spawns any other way.
 * In-process values, hence camelCase; what is stored of them is `ExecutionStart` and `ExecutionEnd`.
 */
export interface Command {
  /** A path, or a name looked up on the child's PATH. Never a shell line: see `parseCommandLine`. */
  executable: string;
  arguments?: readonly string[];
  workingDirectory?: string;
  /** Given variables; what else the child sees is decided by `StartOptions.environment`. */
  environment?: Readonly<Record<string, string>>;
  timeoutMs?: number;
  limits?: Limits;
}

export interface Limits {
  cpuSeconds?: number;
  fileSizeBytes?: number;
  openFiles?: number;
  /** By cgroup: of everything the command starts together. */
  memoryBytes?: number;
  /** By cgroup: how many processes and threads may exist at once. */
  processes?: number;
  /** Watched: by how much what lies in the working directory may grow. See `StartOptions.uncounted`. */
  diskBytes?: number;
  /** Watched: by how many the files, folders and links in the working directory may grow. */
  files?: number;
}

/** What lies in some folders: bytes as the file system gives them out, and names. */
export interface DiskUsage {
  bytes: number;
  files: number;
}

export const isolationLevels = ["none", "group", "pid", "sandbox"] as const;
export type Isolation = (typeof isolationLevels)[number];

export const environmentModes = ["merge", "inherit", "replace"] as const;
export type EnvironmentMode = (typeof environmentModes)[number];

export interface EnvironmentOptions {
  mode: EnvironmentMode;
  /** Names (a trailing `*` matches a prefix) passed although they would be withheld. */
  allow?: readonly string[];
  /** Names withheld although they would be passed. */
  deny?: readonly string[];
}

export interface StartOptions {
  isolation?: Isolation | "auto";
  environment?: EnvironmentOptions;
  /** The environment that `merge` and `inherit` draw from; `process.env` unless given. */
  parentEnvironment?: Readonly<Record<string, string | undefined>>;
  /** DROVER_* ids, set in every child, also under `replace`. */
  ids?: Readonly<Record<string, string>>;
  /** `inherit` hands over Drover's own descriptor, so that a terminal stays one. */
  stdin?: "none" | "inherit" | "pipe" | Uint8Array;
  /** `merged`: stderr is written to stdout's pipe, in the order the command wrote. */
  output?: "both" | "merged" | "none";
  /** Between SIGTERM and SIGKILL. */
  graceMs?: number;
  /** Once aborted, a kill waits no longer: the second Ctrl-C. */
  hurry?: AbortSignal;
  /** How long a pipe held open by someone else may stay silent after the exit. */
  drainMs?: number;
  /** `keep` lets what is left after a normal exit live on; it implies isolation `group`. */
  leftovers?: "kill" | "keep";
  /** Directories writable inside `sandbox`, beside the working directory. */
  writable?: readonly string[];
  /**
   * Absolute directories that the command finds empty and read-only, at `pid` and `sandbox`; `auto` becomes `group`
   * where they cannot be hidden. One that does not exist is passed over. `group` and `none` hide nothing.
   */
  hide?: readonly string[];
  /**
   * Directories inside hidden ones that the command sees and uses. One that does not exist is passed over. At `sandbox`
   * the command can change only what `writable`, its working directory and its temporary folder name of them.
   */
  show?: readonly string[];
  /** Absolute directories that the command can read but not change, under the same conditions as `hide`. */
  readOnly?: readonly string[];
  /**
   * What the limits `diskBytes` and `files` do not count of the working directory: what it held before, which
   * `execute` finds out by itself, and folders in it that are somebody else's.
   */
  uncounted?: { before?: DiskUsage; folders?: readonly string[] };
}

export interface Running {
  readonly pid: number | undefined;
  /** Variable names that were not handed to the child. */
  readonly withheld: readonly string[];
  readonly stdin: Writable | null;
  readonly stdout: Readable | null;
  readonly stderr: Readable | null;
  /** Ends everything the command started; resolves once nothing of it is alive. Idempotent. */
  kill(reason: StopReason): Promise<void>;
  /** Never rejects. */
  readonly result: Promise<Ended>;
}

export interface Ended {
  /** null when killed by a signal or never started. */
  exitCode: number | null;
  signal: NodeJS.Signals | `SIG${number}` | null;
  /** Who ended it, where it was not the command itself. */
  stopped: StopReason | null;
  startTime: Date;
  endTime: Date;
  durationMs: number;
  /** What was really applied. null: nothing was started. */
  isolation: Isolation | null;
  /** Processes still alive after the command's own exit, and killed then. */
  leftovers: number;
  resources: { userMs: number; systemMs: number; maxRssKb: number } | null;
  error: CommandFault | null;
}

export interface CommandFault {
  code: ErrorCode;
  message: string;
  /** For DROVER-EXE-009: which limit. */
  limit?: keyof Limits | "output";
}

export interface CaptureOptions {
  /** `none` discards, `file` writes whole (redacted) streams to `spill` and keeps nothing in memory. */
  mode: "both" | "merged" | "none" | "file";
  /** Kept per stream: past it the head and the tail stay, with a mark between them. */
  maxBytes: number;
  /** `fail` ends the command with DROVER-EXE-004 when a stream passes `maxBytes`. */
  onLimit: "truncate" | "fail";
  /** Where the whole streams go, redacted. Required for `file`, optional for the others. */
  spill?: { stdout: string; stderr: string };
  /** Applied to spill files only: what the caller gets back is what the command wrote. */
  redactor?: Redactor;
  /** Raw bytes as they come, e.g. to a terminal. A returned promise holds the stream back. */
  onOutput?: (stream: OutputStream, chunk: Uint8Array) => void | Promise<void>;
}

export type OutputStream = "stdout" | "stderr";

export interface CommandResult extends Ended {
  success: boolean;
  timedOut: boolean;
  /** Variable names that were not handed to the command. */
  withheld: readonly string[];
  stdout: Captured;
  stderr: Captured;
}

/** What was kept of a stream. `head` and `tail` are cut on UTF-8 boundaries where the text is UTF-8. */
export interface Captured {
  head: Uint8Array;
  /** Empty unless truncated. */
  tail: Uint8Array;
  totalBytes: number;
  truncated: boolean;
}

export type StartCommand = (command: Command, options: StartOptions, signal: AbortSignal) => Running;

/** Secrets out. Handed in to whatever writes; see src/redact. */
export interface Redactor {
  text(text: string): string;
  bytes(bytes: Uint8Array): Uint8Array;
  /** Strings at any depth of plain data, keys included. */
  value<T>(value: T): T;
  /** The same, with a pause after each millisecond's work or two. */
  valueInPieces<T>(value: T): Generator<undefined, T>;
  stream(): RedactStream;
  /** Known secrets alone, without guessing from shapes: whatever else is in there stays as it is. */
  exactBytes(bytes: Uint8Array): Uint8Array;
}

/** Holds back as much as a secret split over chunks needs. */
export interface RedactStream {
  push(chunk: Uint8Array): Uint8Array;
  end(): Uint8Array;
}
