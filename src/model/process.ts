import type { Readable, Writable } from "node:stream";
import type { ErrorCode } from "./errors.ts";
import type { StopReason } from "./states.ts";
import type { Environment } from "./environment.ts";

/**
 * A command to start. All of Drover starts processes through this interface. The record stores `ExecutionStart` and
 * `ExecutionEnd` instead of these types, which are used in-process only and are therefore camelCase.
 */
export interface Command {
  /** A path, or a name looked up on the child's PATH. Never a shell line: see `parseCommandLine`. */
  executable: string;
  arguments?: readonly string[];
  workingDirectory?: string;
  /** Variables set for the child. `StartOptions.environment` decides which others it sees. */
  environment?: Readonly<Record<string, string>>;
  timeoutMs?: number;
  limits?: Limits;
}

export interface Limits {
  cpuSeconds?: number;
  fileSizeBytes?: number;
  openFiles?: number;
  /** Enforced by cgroup, for the command and all its descendants together. */
  memoryBytes?: number;
  /** Maximum number of processes and threads at a time, enforced by cgroup. */
  processes?: number;
  /** How much the working directory may grow, checked periodically. See `StartOptions.uncounted`. */
  diskBytes?: number;
  /** How many files, directories and links may be added to the working directory, checked periodically. */
  files?: number;
}

/** The contents of some directories: allocated bytes, and the number of files, directories and links. */
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
  /** Names that are passed even if they would be withheld. `A_*` matches every name that starts with `A_`. */
  allow?: readonly string[];
  /** Names that are withheld even if they would be passed. */
  deny?: readonly string[];
}

export interface StartOptions {
  isolation?: Isolation | "auto";
  environment?: EnvironmentOptions;
  /** The source environment for `merge` and `inherit`. Defaults to `process.env`. */
  parentEnvironment?: Environment;
  /** DROVER_* variables, set in every child, even with `replace`. */
  ids?: Readonly<Record<string, string>>;
  /**
   * Bytes are written to the child. `pipe` makes `RunningProcess.stdin` a stream. `inherit` passes Drover's own stdin, so
   * that the child can use the terminal. Defaults to `none`.
   */
  stdin?: "none" | "inherit" | "pipe" | Uint8Array;
  /** `merged` sends stderr to stdout's pipe, which preserves the order of writes. */
  output?: "both" | "merged" | "none";
  /** Time between SIGTERM and SIGKILL. */
  graceMs?: number;
  /** Aborting it skips the grace period, as a second Ctrl-C does. */
  hurry?: AbortSignal;
  /** How long to wait for more output after the exit while another process holds the pipe open. */
  drainMs?: number;
  /** `keep` leaves descendants running after a normal exit. It implies isolation `group`. */
  leftovers?: "kill" | "keep";
  /**
   * A real path. The command starts only if its working directory is this directory or inside it, and not if another
   * process has replaced it with a symlink that leads elsewhere.
   */
  workRoot?: string;
  /**
   * The directory for temporary files, which is writable inside `sandbox`. Defaults to the TMPDIR that the command gets
   * from `parentEnvironment`, or `/tmp`. The command's own TMPDIR does not change what is writable.
   */
  temporaryDirectory?: string;
  /** Directories that are writable inside `sandbox`, in addition to the working and the temporary directory. */
  writable?: readonly string[];
  /**
   * Absolute directories that appear empty and read-only to the command, with `pid` and `sandbox` only. `auto` falls back
   * to `group` if they cannot be hidden. Missing directories are ignored.
   */
  hide?: readonly string[];
  /**
   * Directories inside hidden ones that stay visible and usable. Missing directories are ignored. With `sandbox`, the
   * command can write to them only if they are in `writable`, its working directory or its temporary directory.
   */
  show?: readonly string[];
  /** Absolute directories that the command can read but not change, under the same conditions as `hide`. */
  readOnly?: readonly string[];
  /**
   * What `diskBytes` and `files` do not count: the previous contents of the working directory, which `execute` measures
   * itself, and directories inside it that belong to somebody else.
   */
  uncounted?: { before?: DiskUsage; folders?: readonly string[] };
}

export interface RunningProcess {
  readonly pid: number | undefined;
  /** Names of variables that were withheld from the child. */
  readonly withheld: readonly string[];
  /** null unless the options contain `stdin: "pipe"`, and if the command could not start. */
  readonly stdin: Writable | null;
  /** null with `output: "none"`, and if the command could not start. */
  readonly stdout: Readable | null;
  /** null with `output: "none"` or `"merged"`, and if the command could not start. */
  readonly stderr: Readable | null;
  /** Kills the command and all its descendants, and resolves once all of them have exited. Idempotent. */
  kill(reason: StopReason): Promise<void>;
  /** Never rejects. */
  readonly result: Promise<ProcessEnd>;
}

export interface ProcessEnd {
  /** null if the command was killed by a signal or never started. */
  exitCode: number | null;
  signal: NodeJS.Signals | `SIG${number}` | null;
  /** Why Drover stopped the command. null if the command ended on its own. */
  stopped: StopReason | null;
  startTime: Date;
  endTime: Date;
  durationMs: number;
  /** The isolation that was applied. null if the command never started. */
  isolation: Isolation | null;
  /** Number of descendants that were still alive after the command's exit and were killed. */
  leftovers: number;
  /** Some of these descendants, with the pid that the command saw. Not redacted. */
  killedProcesses?: readonly KilledProcess[];
  resources: { userMs: number; systemMs: number; maxRssKb: number } | null;
  error: CommandFault | null;
}

export interface KilledProcess {
  pid: number;
  /** The process's command line, possibly truncated. */
  commandLine: string;
}

export interface CommandFault {
  code: ErrorCode;
  message: string;
  /** The exceeded limit, for DROVER-EXE-009. */
  limit?: keyof Limits | "output";
}

export interface CaptureOptions {
  /** `none` discards output. `file` writes the complete, redacted streams to `spill` and keeps nothing in memory. */
  mode: "both" | "merged" | "none" | "file";
  /** Limit per stream. Keeps the head and the tail of a longer stream, with a note between them. */
  maxBytes: number;
  /** `fail` stops the command with DROVER-EXE-004 when a stream exceeds `maxBytes`. */
  onLimit: "truncate" | "fail";
  /** Files for the complete, redacted streams. Required for `file`, optional otherwise. */
  spill?: { stdout: string; stderr: string };
  /** Applied to spill files only. The caller gets the original output. */
  redactor?: Redactor;
  /** Receives raw bytes as they arrive, for example to show them. A returned promise applies backpressure. */
  onOutput?: (stream: OutputStream, chunk: Uint8Array) => void | Promise<void>;
}

export type OutputStream = "stdout" | "stderr";

export interface CommandResult extends ProcessEnd {
  success: boolean;
  timedOut: boolean;
  /** Names of variables that were withheld from the command. */
  withheld: readonly string[];
  stdout: CapturedOutput;
  stderr: CapturedOutput;
}

/** The captured part of a stream. If it is UTF-8, `head` and `tail` are cut at character boundaries. */
export interface CapturedOutput {
  head: Uint8Array;
  /** Empty unless truncated. */
  tail: Uint8Array;
  totalBytes: number;
  truncated: boolean;
}

export type StartCommand = (command: Command, options: StartOptions, signal: AbortSignal) => RunningProcess;

/** Removes secrets from data before it is written; see src/redact. */
export interface Redactor {
  text(text: string): string;
  bytes(bytes: Uint8Array): Uint8Array;
  /** Redacts strings at any depth of plain data, including keys. */
  value<T>(value: T): T;
  /** Like `value`, but yields every millisecond or two. */
  valueInPieces<T>(value: T): Generator<undefined, T>;
  stream(): RedactStream;
  /** Redacts known secrets only, without detecting secrets by their format. */
  exactBytes(bytes: Uint8Array): Uint8Array;
}

/** Buffers enough to detect a secret that is split across chunks. */
export interface RedactStream {
  push(chunk: Uint8Array): Uint8Array;
  end(): Uint8Array;
}
