import type { AgentPosition } from "../model/agent-position.ts";
import type { Agent } from "../model/agent.ts";
import type { Requester } from "../model/requester.ts";
import type { AuditState, AuditVerification } from "../model/audit.ts";
import type { DefinitionFault } from "../model/definition-fault.ts";
import type { ListedAgent, WaitReason } from "../model/dispatch-ops.ts";
import type { ErrorCode } from "../model/errors.ts";
import type { NewId } from "../model/ids.ts";
import type { Run } from "../model/run.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { RunnerPort } from "../model/runner-port.ts";
import type { Store } from "../model/store.ts";
import type { Vault } from "../model/vault.ts";
import type { TokenRole } from "../model/token.ts";
import type { ScheduleEditor } from "../trigger/schedule-editor.ts";
import type { FeedHub } from "../show/feed-hub.ts";
import type { ObserveRequest } from "../show/metrics/requests.ts";
import type { OwnerLookup } from "../show/owner-lookup.ts";
import type { AddressRules } from "../trigger/addresses.ts";
import type { Receiver } from "../trigger/receive.ts";
import type { SecretBox } from "../trigger/secret-box.ts";
import type { ProblemFault } from "../wire/problem.ts";
import type { AttemptTokens } from "./attempt-token.ts";
import type { LargeBodies } from "./bodies/large-bodies.ts";
import type { HeavyTurns } from "./heavy-turns.ts";
import type { RequestLimits } from "./request-limiter.ts";
import type { Prove } from "./prover.ts";
import type { OpenApiDocument } from "./openapi-document.ts";
import type { Principal } from "./rule.ts";

/** What handlers need to read the record, end a session and stop runs. */
export interface RecordDeps {
  store: Pick<Store, "apply" | "blobs" | "read">;
  owners: OwnerLookup;
}

/** What handlers need to answer questions as well. */
export interface AnswerDeps extends RecordDeps {
  /** Validates edited tool input against the tool's JSON Schema. Returns every fault. */
  checkInput(
    schema: Record<string, unknown>,
    input: unknown,
    requester: Requester,
  ): Promise<{ code: ErrorCode; path: string; message: string; retry_after_seconds?: number }[]>;
}

/** Everything the handlers need from a coordinator. */
export interface ApiDeps extends AnswerDeps {
  submit(request: RunRequest, who: Submitter): Promise<SubmitResult>;
  /** Returns a function that long work calls often. It waits once the work has occupied the event loop for a while. */
  pauseAfterWork(): () => Promise<void>;
  /**
   * Submits all requests in a few transactions, one batch after the other. The results are in the order of the
   * requests.
   */
  submitMany(requests: readonly RunRequest[], who: Submitter): Promise<SubmitResult[]>;
  dispatcher: {
    /** The port for this owner's runners. It does not know runners of other owners. */
    portFor(owner: string): RunnerPort;
    why(run_id: string): Promise<WaitReason[]>;
  };
  agents: {
    page(page: { after?: AgentPosition; limit: number }): Promise<{ items: ListedAgent[]; next: AgentPosition | null }>;
    find(name: string): Promise<ListedAgent | { candidates: ListedAgent[] } | null>;
    put(agent: Agent, by: string): Promise<void>;
    /** Returns false if no agent with that name was created through the API. */
    remove(name: string): Promise<boolean>;
  };
  schedules: ScheduleEditor;
  /** Validates a definition with the rules for agent files. */
  checkAgent(
    definition: unknown,
    requester: Requester,
  ): Promise<{ ok: true; agent: Agent } | { ok: false; faults: DefinitionFault[]; retryAfterSeconds?: number }>;
  triggers: {
    secrets: SecretBox;
    vault: Vault;
    addresses: AddressRules;
    receiver: Receiver;
  };
  /** Ends the open requests of expired and revoked tokens. Resolves when all tokens are checked. */
  recheckTokens(): Promise<void>;
  now: () => Date;
  newId: NewId;
}

/** Dependencies of a coordinator that serves HTTP. */
export interface SystemDeps extends ApiDeps {
  metrics: { observeRequest: ObserveRequest; render(): Promise<string> };
  /** Why the record cannot be used at the moment; null if it can. Responds quickly even if the record hangs. */
  findRecordError(): Promise<unknown>;
  /** Proves to a caller that this coordinator knows its token; null if the origin is not this coordinator's. */
  prove: Prove;
  audit: {
    state(): Promise<AuditState>;
    /** Joins a verification in progress. It is cancelled once every waiter's signal is aborted. */
    verify(signal: AbortSignal): Promise<AuditVerification>;
  };
  /** Makes a consistent copy of the record. Returns null while another copy is being made or downloaded. */
  backup(signal: AbortSignal): Promise<BackupFile> | null;
  version: string;
  engine: "sqlite" | "postgres";
  startedAt: Date;
  hub: Pick<FeedHub, "setPartials">;
  /** Name of the session cookie. It differs per record, so two records on one host do not sign each other out. */
  cookieName: string;
  /** A runner may give up a held poll that has received no byte for this long. */
  pollSilenceMs: number;
  /** The whole API as an OpenAPI document. */
  getOpenApiDocument(): OpenApiDocument;
  /** Handles a Model Context Protocol message. */
  handleMcp(
    principal: Principal,
    message: unknown,
    headers: Readonly<Record<string, string | undefined>>,
    signal: AbortSignal,
  ): Promise<McpResponse>;
}

/** Everything the HTTP server needs. */
export interface ServeDeps extends Omit<
  SystemDeps,
  "recheckTokens" | "pollSilenceMs" | "getOpenApiDocument" | "handleMcp"
> {
  attemptTokens: AttemptTokens;
  hub: FeedHub;
  authEnabled: boolean;
  publicUrls: readonly string[];
  /** Shared by the whole process, because it divides up the event loop. */
  heavyTurns: HeavyTurns;
  largeBodies: LargeBodies;
  /** The directory of the built dashboard; null if it was not built. */
  webDirectory: string | null;
  /** Interval of keepalives during held polls and backups. */
  keepaliveMs?: number;
  /** Limits per caller. */
  requestLimits?: RequestLimits;
  /** Disconnects a client that reads nothing of its response for this long. */
  stalledMs?: number;
  /** Called with every error that results in a 5xx response. */
  onDefect(error: unknown, where: string): void;
}

export interface McpResponse {
  response: Response;
  /** Called when the response was sent completely or the client has disconnected. */
  onEnd(): void;
}

export interface BackupFile {
  file: string;
  /** Deletes the file. */
  dispose(): Promise<void>;
}

export interface Submitter {
  subject: string;
  role: TokenRole;
  /** The attempt that submits, for requests from inside a run. */
  parentAttempt?: { run_id: string; attempt: number };
  /** Aborted when the caller no longer waits for the response. */
  signal?: AbortSignal;
}

export type SubmitResult =
  | { ok: true; run: Run; repeated: boolean }
  | {
      ok: false;
      fault: {
        status: number;
        code: ErrorCode;
        message: string;
        faults: ProblemFault[];
        next?: string;
        retry_after_seconds?: number;
      };
    };
