import type { Agent } from "../model/agent.ts";
import type { ListedAgent, RunnerRow, WhyPending } from "../model/dispatch-ops.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { NewId } from "../model/ids.ts";
import type { Run } from "../model/run.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { RunnerPort } from "../model/runner-port.ts";
import type { Store } from "../model/store.ts";
import type { TokenRole } from "../model/token.ts";
import type { FeedHub } from "../show/feed-hub.ts";
import type { SeeRequest } from "../show/metrics/requests.ts";
import type { Owners } from "../show/owners.ts";
import type { ProblemFault } from "../wire/problem.ts";
import type { AttemptTokens } from "./attempt-token.ts";

/** Everything the HTTP side asks of the rest, handed in by the composition. */
export interface ServeDeps {
  store: Pick<Store, "apply" | "blobs" | "read">;
  submit(request: RunRequest, who: Who): Promise<SubmitAnswer>;
  dispatcher: {
    /** The port as the runners of this owner see it: another owner's runner is unknown to it. */
    portFor(owner: string): RunnerPort;
    stopRuns(run_ids: string[], by: string): Promise<Stopped>;
    /** False where there is no such runner. */
    drainRunner(runner_id: string, draining: boolean): Promise<boolean>;
    why(run_id: string): Promise<WhyPending[]>;
    listRunners(): Promise<RunnerRow[]>;
  };
  agents: {
    list(): Promise<ListedAgent[]>;
    find(name: string): Promise<ListedAgent | { candidates: ListedAgent[] } | null>;
    put(agent: Agent, by: string): Promise<void>;
    /** False where the API has put none of that name. */
    remove(name: string): Promise<boolean>;
  };
  /** What is wrong with a JSON Schema; empty for a good one. */
  checkSchema(schema: object): Promise<ProblemFault[]>;
  attemptTokens: AttemptTokens;
  hub: FeedHub;
  owners: Owners;
  metrics: { seeRequest: SeeRequest; write(): Promise<string> };
  /** Why the record cannot be used now; null where it can. Does not take long. */
  recordFault(): Promise<unknown>;
  /** Makes a consistent copy of the record, or gives it up; null while another one is made or fetched. */
  backup(signal: AbortSignal): Promise<BackupFile> | null;
  now: () => Date;
  newId: NewId;
  authEnabled: boolean;
  publicUrls: readonly string[];
  /** How often a poll that is held says that it still is, and a backup that it is being made. */
  pollSignMs?: number;
  version: string;
  /** Told of whatever is answered with 5xx. */
  onDefect(error: unknown, where: string): void;
}

export interface BackupFile {
  file: string;
  /** Removes it. */
  dispose(): Promise<void>;
}

export interface Who {
  subject: string;
  role: TokenRole;
}

export type SubmitAnswer =
  | { ok: true; run: Run; repeated: boolean }
  | { ok: false; fault: { status: number; code: ErrorCode; message: string; faults: ProblemFault[]; next?: string } };

export interface Stopped {
  cancelled: string[];
  stopping: string[];
  untouched: string[];
}
