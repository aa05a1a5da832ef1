import type { ExecutionStart } from "../../model/execution.ts";
import type { Delta, Executor, Outcome } from "../../model/executor.ts";
import type { Variables } from "../../model/expand-agent.ts";
import type { NewId } from "../../model/ids.ts";
import type { Redactor, StartCommand, StartOptions } from "../../model/process.ts";
import type { NamedValue } from "../../redact/secret-values.ts";
import type { RunnerDirectories } from "../workspace/open-directories.ts";
import type { Journal } from "../journal/journal.ts";
import type { UploadTimes } from "../collect/keep-files.ts";
import type { TimeLimits } from "./run-limits.ts";
import type { SessionPort } from "../sessions/session-port.ts";
import type { Upload } from "../collect/upload.ts";

/** Shared by all runs of one registration. */
export interface SuperviseOptions {
  executor: Executor;
  /** Searched first for a relative command. */
  runnerDirectory: string;
  directories: RunnerDirectories;
  /** The coordinator's address for Drover commands inside a run; null for none. */
  apiUrl: string | null;
  limits: TimeLimits;
  variables: Variables;
  start: StartCommand;
  startOptions: Omit<StartOptions, "ids" | "output" | "stdin">;
  owner: ExecutionStart["owner"];
  /** Whether the owner of a directory lock is still alive. */
  isAlive: (owner: ExecutionStart["owner"]) => boolean;
  /** The directory of the lock files with which runners claim work directories. */
  lockDirectory: string;
  uploads: UploadTimes;
  random: () => number;
  /** Returns the repository root of a directory, and its commit (`given`, if not null). */
  findCheckout: (directory: string, given: string | null) => { repo_sha: string | null; repo_root: string };
  redactor: Redactor;
  /** A redactor that also redacts these values. */
  redactorWith(values: readonly NamedValue[]): Redactor;
  newId: NewId;
  now: () => Date;
  monotonic: () => number;
  outputDelayMs: number;
  onFinishTimeoutMs: number;
  /** How long a stopped executor may take to settle, after the grace period of its programs, before Drover gives up on it. */
  settleTimeoutMs?: number;
  onNotice: (message: string, cause?: unknown) => void;
  /** Called when a run starts and when it ends, for the runner's log. */
  onProgress?: ((progress: RunProgress) => void) | undefined;
}

export interface RunProgress {
  run_id: string;
  attempt: number;
  agent_name: string;
  /** null when the run starts. */
  ended: { outcome: Outcome; durationMs: number } | null;
}

/** Connects a run to its journal, the coordinator and the runner's slots. */
export interface RunLinks {
  journal: Journal;
  notify(): void;
  notifyLater(): void;
  flush(): void;
  onSlotFreed(): void;
  waitForJournalSpace(): Promise<void>;
  sendPartial(delta: Delta): void;
  upload: Upload;
  sessions: SessionPort;
}
