import type { AgentPosition } from "../model/agent-position.ts";
import type { Agent } from "../model/agent.ts";
import type { Requester } from "../model/requester.ts";
import type { AuditState, AuditVerified } from "../model/audit.ts";
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
import type { HeavyTurns } from "./heavy-turns.ts";
import type { RequestLimits } from "./request-limiter.ts";
import type { Prove } from "./prover.ts";
import type { OpenApiDocument } from "./openapi-document.ts";
import type { Principal } from "./rule.ts";

/** Enough to read the record, to end a session, and to ask for the end of runs. */
export interface RecordDeps {
  store: Pick<Store, "apply" | "blobs" | "read">;
  owners: OwnerLookup;
}

/** And to answer questions. */
export interface AnswerDeps extends RecordDeps {
  /** Everything wrong with what a person wants a tool to be called with, by the tool's JSON Schema. */
  checkInput(
    schema: Record<string, unknown>,
    input: unknown,
    requester: Requester,
  ): Promise<{ code: ErrorCode; path: string; message: string; retry_after_seconds?: number }[]>;
}

/** Everything the handlers ask of a coordinator, handed in by the composition. */
export interface ApiDeps extends AnswerDeps {
  submit(request: RunRequest, who: Who): Promise<SubmitResult>;
  dispatcher: {
    /** The port as the runners of this owner see it: another owner's runner is unknown to it. */
    portFor(owner: string): RunnerPort;
    why(run_id: string): Promise<WaitReason[]>;
  };
  agents: {
    page(page: { after?: AgentPosition; limit: number }): Promise<{ items: ListedAgent[]; next: AgentPosition | null }>;
    find(name: string): Promise<ListedAgent | { candidates: ListedAgent[] } | null>;
    put(agent: Agent, by: string): Promise<void>;
    /** False where the API has put none of that name. */
    remove(name: string): Promise<boolean>;
  };
  schedules: ScheduleEditor;
  /** A definition by the rules that agent files are checked by. */
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
  /** Ends the open requests of tokens that have ended. Resolves when all were checked. */
  recheckTokens(): Promise<void>;
  now: () => Date;
  newId: NewId;
}

/** What only a coordinator that serves over HTTP has. */
export interface SystemDeps extends ApiDeps {
  metrics: { seeRequest: ObserveRequest; write(): Promise<string> };
  /** Why the record cannot be used now; null where it can. Does not take long. */
  recordFault(): Promise<unknown>;
  /** What a caller knows this coordinator by; null for an origin that is not one of its own. */
  prove: Prove;
  audit: {
    state(): Promise<AuditState>;
    /** Joins one that is under way. It is given up once everyone who waits for it has hung up. */
    verify(signal: AbortSignal): Promise<AuditVerified>;
  };
  /** Makes a consistent copy of the record, or gives it up; null while another one is made or fetched. */
  backup(signal: AbortSignal): Promise<BackupFile> | null;
  version: string;
  hub: Pick<FeedHub, "setPartials">;
  /** Of the cookie that a browser's session is in. Two records on one host do not sign each other out. */
  cookieName: string;
  /** After so long without a byte, a runner may take a held poll for lost. */
  pollSilenceMs: number;
  /** The whole API as an OpenAPI document. */
  document(): OpenApiDocument;
  /** Answers a message of the Model Context Protocol. */
  handleMcp(
    principal: Principal,
    message: unknown,
    headers: Readonly<Record<string, string | undefined>>,
    signal: AbortSignal,
  ): Promise<McpResponse>;
}

/** What HTTP itself needs beside that. */
export interface ServeDeps extends Omit<SystemDeps, "recheckTokens" | "pollSilenceMs" | "document" | "handleMcp"> {
  attemptTokens: AttemptTokens;
  hub: FeedHub;
  authEnabled: boolean;
  publicUrls: readonly string[];
  /** One for the whole process: it shares its event loop out. */
  heavyTurns: HeavyTurns;
  /** The folder of the built dashboard; null where it is missing. */
  webDirectory: string | null;
  /** How often a poll that is held says that it still is, and a backup that it is being made. */
  keepaliveMs?: number;
  /** What the requests of one caller may take up. */
  requestLimits?: RequestLimits;
  /** After which an answer is cut off whose reader takes nothing of it. */
  stalledMs?: number;
  /** Told of whatever is answered with 5xx. */
  onDefect(error: unknown, where: string): void;
}

export interface McpResponse {
  response: Response;
  /** Called when all of it was sent, or nobody is left to send it to. */
  onEnd(): void;
}

export interface BackupFile {
  file: string;
  /** Removes it. */
  dispose(): Promise<void>;
}

export interface Who {
  subject: string;
  role: TokenRole;
  /** Where a command of a run asks: which attempt it belongs to. */
  inside?: { run_id: string; attempt: number };
  /** Aborted when nobody waits for the answer any more. */
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
