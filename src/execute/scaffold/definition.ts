import type { Executor, FoundFile, Invocation, Outcome, RunContext } from "../../model/executor.ts";
import type { ProcessEnd } from "../../model/process.ts";

/** The parts of an executor that its author writes; the scaffold does the rest. See docs/writing-executors.md for an example. */
export interface ExecutorDefinition {
  name: string;
  /** The executor's capabilities besides starting a session; all false by default. */
  can?: Partial<Executor["can"]>;
  /** The runner's variables that its processes receive. A trailing `*` matches any suffix. */
  variables?: readonly string[];
  /** Whether it supports Claude Code's system prompt (`preset`) instead of the agent's own. */
  takesPreset?: boolean;
  /**
   * Does the work inside `job.workDir` and returns the result. A RunFailure, thrown here or by `runCli`, fails the run
   * with its reason. Any other error counts as a bug in the executor.
   */
  // oxlint-disable-next-line typescript/no-invalid-void-type -- allows an `execute` without a return
  execute(job: Job): Promise<string | void | Done>;
  /** Builds the prompt. By default: the agent's first message, the prompt and the parameters. */
  buildPrompt?(invocation: Invocation): string;
  /** Runs before `execute`. Files it writes are inputs and do not count as results unless they change later. */
  setupWorkDir?(job: Job): Promise<void>;
  /** Chooses which of the files that the run created or changed are kept; all by default. */
  collectFiles?(found: readonly FoundFile[], job: Job): readonly FoundFile[] | Promise<readonly FoundFile[]>;
}

export interface Done {
  text?: string | null;
  data?: unknown;
  exit_code?: number | null;
  /** Replaces the fields above. Files are kept beside it, unless it is cancelled or parked. */
  outcome?: Outcome;
}

/** One run, as an executor sees it. */
export interface Job {
  invocation: Invocation;
  prompt: string;
  systemPrompt: string | null;
  parameters: Record<string, unknown>;
  workDir: string;
  homeDir: string;
  tmpDir: string;
  /** The parent of the `profiles/` directory, where the programs and files that come with the executor are. */
  runnerDir: string;
  /** Aborts when the run should stop. */
  signal: AbortSignal;
  context: RunContext;
  /** 0 to 100; never decreases. */
  reportProgress(percent: number, message?: string): Promise<void>;
  /** Writes a file into the work directory that never counts as a result, and returns its path. */
  writeInput(name: string, content: string | Uint8Array): Promise<string>;
  runCli(cli: Cli): Promise<CliResult>;
}

export interface Cli {
  command: readonly [string, ...string[]];
  stdin?: string;
  env?: Record<string, string>;
  cwd?: string;
  timeoutMs?: number;
  /** Receives each line of stdout. The lines are then not logged as output. */
  onLine?: (line: string) => void | Promise<void>;
  /** If false, a non-zero exit is returned instead of thrown. */
  check?: boolean;
  /** When this aborts, the program and everything it started is stopped, and the result is returned as usual. */
  enough?: AbortSignal;
}

export interface CliResult {
  exitCode: number | null;
  signal: string | null;
  /** The first megabyte. */
  stdout: string;
  stderr: string;
  ended: ProcessEnd;
}
