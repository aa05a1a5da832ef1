import type { ExecutionStart } from "../../model/execution.ts";
import type { Delta, Executor } from "../../model/executor.ts";
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

/** What all runs of one registration share. */
export interface SuperviseOptions {
  executor: Executor;
  /** Where a relative command is looked for first. */
  runnerDirectory: string;
  directories: RunnerDirectories;
  /** Where Drover commands inside its runs reach the coordinator; null: nowhere. */
  apiUrl: string | null;
  limits: TimeLimits;
  variables: Variables;
  start: StartCommand;
  startOptions: Omit<StartOptions, "ids" | "output" | "stdin">;
  owner: ExecutionStart["owner"];
  /** Whether somebody who holds a directory still lives. */
  isAlive: (owner: ExecutionStart["owner"]) => boolean;
  /** Where runners say which directories they work in. */
  locks: string;
  uploads: UploadTimes;
  random: () => number;
  /** The commit that a run in this directory works on, unless one is given. */
  findCheckout: (directory: string, given: string | null) => { repo_sha: string | null; repo_root: string };
  redactor: Redactor;
  /** The same, and these values, whatever their names. */
  redactorWith(values: readonly NamedValue[]): Redactor;
  newId: NewId;
  now: () => Date;
  monotonic: () => number;
  outputDelayMs: number;
  onFinishTimeoutMs: number;
  /** How long after a stop an executor may take to settle, beyond the grace of its programs, before it is given up. */
  reactMs?: number;
  onNotice: (message: string, cause?: unknown) => void;
}

/** Towards the coordinator and the slots. */
export interface RunLinks {
  journal: Journal;
  notify(): void;
  flush(): void;
  slotFreed(): void;
  waitForRoom(): Promise<void>;
  partial(delta: Delta): void;
  upload: Upload;
  sessions: SessionPort;
}
