import { createHash } from "node:crypto";
import type { SchemaChecker } from "../define/json-schema/checker.ts";
import type { Agent } from "../model/agent.ts";
import type { NewId } from "../model/ids.ts";
import { isLargeValue } from "../model/large-value.ts";
import { newRun } from "../model/new-run.ts";
import type { RunRequest } from "../model/run-request.ts";
import type { Demands, Run } from "../model/run.ts";
import type { CreateRun, OpResult, Store } from "../model/store.ts";
import { getRunOwner, getTemplateOwner, type Vault } from "../model/vault.ts";
import { findAgent, type AgentCatalog, type FoundAgent } from "./find-agent.ts";
import { resolveSession, type ResolvedSession } from "./resolve-session.ts";
import { checkRunLimits } from "./run-limits.ts";
import { mergeDemands } from "./merge-demands.ts";
import { checkParameters, toDottedPath, type ParameterFault } from "./parameters.ts";
import { checkRedactionMarks } from "./redacted-input.ts";
import { refuse, buildSubmitFault, isSubmitFault, type SubmitFault } from "./submit-fault.ts";

export interface SubmitDeps {
  store: Pick<Store, "apply" | "read">;
  agents: AgentCatalog;
  schemas: SchemaChecker;
  now: () => Date;
  newId: NewId;
  /** Without a vault, secrets are stored in clear text. */
  vault?: Vault;
  /** Stores the run. */
  createRun(create: CreateRun): Promise<OpResult>;
  /** Large requests wait for their turn before each step, so that several of them do not block other callers. */
  waitForTurn?: () => Promise<void>;
}

/** Who submits a run. Admins may continue any session, others only their own. */
export interface Submitter {
  subject: string;
  role: "admin" | "user" | "viewer" | "runner";
  /** The attempt whose command submits this run, if any. */
  parentAttempt?: { run_id: string; attempt: number };
  /** Aborted when the caller disconnects. */
  signal?: AbortSignal;
}

export type SubmitResult = { ok: true; run: Run; repeated: boolean } | { ok: false; fault: SubmitFault };

/** Stores a pending run for the request, or returns the fault if it is refused. */
export async function submitRun(request: RunRequest, submitter: Submitter, deps: SubmitDeps): Promise<SubmitResult> {
  const prepared = await prepareRun(request, submitter, deps);
  if (!prepared.ok) return prepared;
  return toSubmitResult(prepared.create, await deps.createRun(prepared.create), deps);
}

export type PrepareResult = { ok: true; create: CreateRun } | { ok: false; fault: SubmitFault };

/** Builds the operation that stores the run, for callers that store something else in the same transaction. Writes nothing. */
export async function prepareRun(
  storedRequest: RunRequest,
  submitter: Submitter,
  deps: Omit<SubmitDeps, "store" | "createRun"> & { store: Pick<Store, "read"> },
): Promise<PrepareResult> {
  const request = restoreSecrets(storedRequest, deps.vault);
  const foundAgent = applyModel(await findAgent(request, deps.agents, deps.store.read), request.model);
  if (isSubmitFault(foundAgent)) return { ok: false, fault: foundAgent };
  const { agent } = foundAgent;
  const limitFault = await checkRunLimits(
    request.parent_run_id,
    submitter.parentAttempt !== undefined,
    deps.store.read,
  );
  if (limitFault !== null) return { ok: false, fault: limitFault };
  const webhookFault = await checkWebhooks(request, submitter, deps);
  if (webhookFault !== null) return { ok: false, fault: webhookFault };
  const session = await resolveSession(request, agent, submitter, deps);
  if (isSubmitFault(session)) return { ok: false, fault: session };
  const waitForTurn =
    deps.waitForTurn !== undefined && isLargeValue(request.parameters) ? deps.waitForTurn : continueAtOnce;
  await waitForTurn();
  const redactionFault = checkRedactionMarks(request);
  if (redactionFault !== null) return { ok: false, fault: redactionFault };
  const requester = {
    subject: submitter.subject,
    get signal() {
      return submitter.signal;
    },
  };
  const faults = await checkParameters(agent, request.parameters, deps.schemas, requester, waitForTurn);
  if (faults.length > 0) {
    const [first] = faults;
    if (first?.retry_after_seconds !== undefined) return { ok: false, fault: toBusyFault(first) };
    const paths = faults.map(({ path, message }) => ({ path: `body.parameters${toDottedPath(path)}`, message }));
    const next = "Pass the parameters that the agent describes in its parameters_schema or ## Parameters section.";
    return refuse(
      400,
      first?.code ?? "DROVER-PAR-001",
      `The parameters do not match the agent ${agent.name}.`,
      paths,
      next,
    );
  }
  const demands = mergeDemands(foundAgent, request, session);
  if (isSubmitFault(demands)) return { ok: false, fault: demands };
  const { runner_id } = foundAgent;
  const timeout = request.timeout_seconds ?? (await readOriginalTimeout(request, deps));
  const idempotencyKey = request.idempotency_key;
  const webhooks = [...(agent.webhooks ?? []), ...(request.webhooks ?? [])];
  await waitForTurn();
  const run = redactIds(toRun(request, submitter, agent, demands, session, deps), deps.vault);
  const { sealed, ...redacted } =
    deps.vault?.conceal(getRunOwner(run.run_id), agent.parameters_schema, {
      parameters: run.parameters,
      prompt: run.prompt,
    }) ?? {};
  const hash = sealed === undefined ? hashText : deps.vault!.fingerprint;
  return {
    ok: true,
    create: {
      op: "create_run",
      run: { ...run, ...redacted },
      events: [],
      agent,
      ...(runner_id === null ? {} : { agent_runner_id: runner_id }),
      ...(timeout === null ? {} : { timeout_seconds: timeout }),
      ...(sealed === undefined ? {} : { sealed }),
      ...(idempotencyKey === undefined
        ? {}
        : {
            idempotency: {
              subject: getKeyOwner(submitter),
              key: concealKey(idempotencyKey, deps.vault),
              fingerprint: hashRequest(request, hash),
            },
          }),
      ...(submitter.parentAttempt === undefined ? {} : { parent_attempt: submitter.parentAttempt }),
      ...(webhooks.length === 0 ? {} : { webhooks }),
      ...(request.settles === undefined ? {} : { settles: request.settles }),
    },
  };
}

const continueAtOnce = (): Promise<void> => Promise.resolve();

/** A run has its own idempotency keys, so it can neither read nor use up the keys of its owner. No subject starts with a space. */
function getKeyOwner({ subject, parentAttempt }: Submitter): string {
  return parentAttempt === undefined ? subject : ` run ${parentAttempt.run_id}`;
}

/** A key with a secret in it is stored as a keyed hash, which still recognizes a repeated request. */
function concealKey(key: string, vault: Vault | undefined): string {
  return vault === undefined || vault.redact(key) === key ? key : vault.fingerprint(key);
}

/** Restores the secrets of a schedule's request, which is stored without them. */
function restoreSecrets({ sealed, ...request }: RunRequest, vault: Vault | undefined): RunRequest {
  if (sealed === undefined || vault === undefined) return request;
  const { parameters, prompt } = vault.open(getTemplateOwner(request.agent_name), sealed);
  return { ...request, parameters, ...(prompt === null ? {} : { prompt }) };
}

function toBusyFault({ code, message, retry_after_seconds = 1 }: ParameterFault): SubmitFault {
  const next = `Try again in ${retry_after_seconds} s, with fewer runs at a time.`;
  const detail = "The parameters cannot be checked now: this caller has requested too many slow checks.";
  return { ...buildSubmitFault(429, code, detail, [{ path: "body.parameters", message }], next), retry_after_seconds };
}

/** A webhook named in the request must exist and belong to the caller or to everyone. */
async function checkWebhooks(
  { webhooks = [] }: RunRequest,
  { subject }: Submitter,
  deps: { store: Pick<Store, "read"> },
): Promise<SubmitFault | null> {
  for (const [index, name] of webhooks.entries()) {
    const stored = await deps.store.read.webhook(name);
    if (stored !== null && (stored.webhook.everyones || stored.webhook.created_by === subject)) continue;
    const path = `body.webhooks[${index}]`;
    const next = `Register it first: drover webhooks add ${name} URL --named`;
    return buildSubmitFault(400, "DROVER-HOK-008", `Unknown webhook: ${name}.`, [{ path, message: "unknown" }], next);
  }
  return null;
}

/** Puts the requested model into the agent snapshot that the run executes. */
function applyModel(foundAgent: FoundAgent | SubmitFault, model: string | undefined): FoundAgent | SubmitFault {
  if (model === undefined || isSubmitFault(foundAgent)) return foundAgent;
  if (foundAgent.agent.type !== "procedural") return { ...foundAgent, agent: { ...foundAgent.agent, model } };
  return buildSubmitFault(
    400,
    "DROVER-SUB-002",
    "Procedural agents have no model.",
    [{ path: "body.model", message: "not supported by procedural agents" }],
    "Omit model.",
  );
}

/** Converts the store's result of the operation that creates a run. */
export async function toSubmitResult(
  { run }: CreateRun,
  result: OpResult,
  deps: { store: Pick<Store, "read"> },
): Promise<SubmitResult> {
  if (!result.ok && result.conflict === "not_found") {
    return refuse(404, "DROVER-SUB-003", "There is no such session.", [
      { path: "body.session_id", message: "unknown" },
    ]);
  }
  if (!result.ok && result.conflict === "fenced")
    return refuse(
      409,
      "DROVER-SUB-008",
      "The run that this command belongs to is being stopped or has finished, so it cannot start another run.",
      [{ path: "body.parent_run_id", message: "is being stopped or has finished" }],
    );
  if (!result.ok && result.conflict === "repeated")
    return refuse(409, "DROVER-HOK-003", "This delivery was received before and already has its run.", []);
  if (!result.ok) {
    return refuse(
      409,
      "DROVER-SUB-004",
      "This Idempotency-Key was used for another request.",
      [{ path: "header.idempotency-key", message: "used before with another body" }],
      "Use a new key, or send exactly what was sent with it before.",
    );
  }
  if (!("repeated" in result)) return { ok: true, run, repeated: false };
  const stored = await deps.store.read.run(result.run_id ?? run.run_id);
  return { ok: true, run: stored ?? run, repeated: true };
}

function toRun(
  request: RunRequest,
  submitter: Submitter,
  agent: Agent,
  demands: Demands,
  session: ResolvedSession,
  deps: Pick<SubmitDeps, "newId" | "now">,
): Run {
  return newRun({
    run_id: deps.newId(),
    agent_name: agent.name,
    created_by: submitter.subject,
    mode: request.mode,
    parameters: request.parameters,
    prompt: request.prompt ?? null,
    attended: request.attended ?? agent.attended ?? false,
    session_id: session.session_id,
    forked_from: session.forked_from,
    fork_at_turn: request.fork_at_turn ?? null,
    parent_run_id: request.parent_run_id ?? null,
    retry_of: request.retry_of ?? null,
    trigger_type: request.mode === "fork" ? "fork" : request.trigger_type,
    schedule: request.schedule ?? null,
    project_dir: request.project_dir ?? session.project_dir ?? getInitialDirectory(request, agent),
    demands,
    model: request.model ?? null,
    priority: request.priority,
    created_at: deps.now().toISOString(),
    task_id: request.task_id ?? null,
    step_id: request.step_id ?? null,
    tool_call_id: request.tool_call_id ?? null,
    worktree_id: request.worktree_id ?? null,
    repo_sha: request.repo_sha ?? null,
  });
}

/** Redacts secrets in the caller's ids. Drover only stores and passes on these ids, so it does not keep the originals. */
function redactIds(run: Run, vault: Vault | undefined): Run {
  if (vault === undefined) return run;
  const { task_id, step_id, tool_call_id, worktree_id, repo_sha } = run;
  return { ...run, ...vault.redact({ task_id, step_id, tool_call_id, worktree_id, repo_sha }) };
}

/** Returns the directory of a new session, or null: a session that is continued stays where it is. */
function getInitialDirectory({ mode }: RunRequest, { working_directory }: Agent): string | null {
  return mode === "start" ? (working_directory ?? null) : null;
}

/** A retry gets the timeout of the run it repeats. */
async function readOriginalTimeout(
  { retry_of }: RunRequest,
  deps: { store: Pick<Store, "read"> },
): Promise<number | null> {
  if (retry_of === undefined) return null;
  return (await deps.store.read.submitted_agent(retry_of))?.timeout_seconds ?? null;
}

/** Equal requests have equal fingerprints, whatever the order of their keys. */
function hashRequest(request: RunRequest, hash: (text: string) => string): string {
  // The request includes the idempotency key, which is the same in all requests that are compared.
  return hash(JSON.stringify(sortKeys(request)));
}

function hashText(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

function sortKeys(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sortKeys);
  if (typeof value !== "object" || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([key, field]) => [key, sortKeys(field)]);
}
