import type { Executor, FoundFile, Invocation, Outcome, RunContext } from "../../model/executor.ts";
import type { Ended } from "../../model/process.ts";

/** All that makes an executor; the rest is the scaffold's. docs/writing-executors.md shows one. */
export interface ExecutorDefinition {
  name: string;
  /** What it can do beside starting; all false unless said. */
  can?: Partial<Executor["can"]>;
  /** Variables of the runner that its processes get; a trailing `*` matches any rest. */
  variables?: readonly string[];
  /** It can use the system prompt of Claude Code (`preset`) in place of the agent's own. */
  takesPreset?: boolean;
  /**
   * Does the work inside `job.workDir`. What it returns is the result; a RunFailure it throws, or lets pass from
   * `runCli`, is a failure with a reason. Anything else it throws is a defect of the executor.
   */
  // oxlint-disable-next-line typescript/no-invalid-void-type -- so that an `execute` without a return is one
  execute(job: Job): Promise<string | void | Done>;
  /** The agent's first message, the prompt and the parameters, unless given. */
  buildPrompt?(invocation: Invocation): string;
  /** Before `execute`; what it writes is an input, and no file of the run unless it is changed later. */
  setupWorkDir?(job: Job): Promise<void>;
  /** Which of the files that the run created or changed are kept: all, unless given. */
  collectFiles?(found: readonly FoundFile[], job: Job): readonly FoundFile[] | Promise<readonly FoundFile[]>;
}

export interface Done {
  text?: string | null;
  data?: unknown;
  exit_code?: number | null;
  /** Stands as it is, in place of the above; files are kept beside it unless it is cancelled or parked. */
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
  /** The parent of the `profiles/` folder: where the programs and files lie that come with the executor. */
  runnerDir: string;
  /** Aborted when the run is to end. */
  signal: AbortSignal;
  context: RunContext;
  /** 0 to 100, and never backwards. */
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
  /** Gets each line of stdout, which is then not logged as output. */
  onLine?: (line: string) => void | Promise<void>;
  /** false: a non-zero exit is returned like any other. */
  check?: boolean;
  /** Once aborted, it is ended with all that it started, and this is returned like any other end. */
  enough?: AbortSignal;
}

export interface CliResult {
  exitCode: number | null;
  signal: string | null;
  /** The first megabyte of it. */
  stdout: string;
  stderr: string;
  ended: Ended;
}
