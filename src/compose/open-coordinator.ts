import { randomFillSync } from "node:crypto";
import { waitForDatabase } from "./wait-for-database.ts";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import type { DatabaseSettings } from "../define/database-settings.ts";
import { checkAgent } from "../define/agent-file.ts";
import { checkSchemas } from "../define/check-schemas.ts";
import { createSlotTimesFactory } from "../define/slot-times.ts";
import type { AgentGate } from "../define/agent-gate.ts";
import { type AgentRegistry, createAgentRegistry } from "../dispatch/agent-registry.ts";
import { createDispatcher, type Dispatcher } from "../dispatch/dispatcher.ts";
import { followAgents } from "./follow-agents.ts";
import { createLowDiskCheck } from "./low-disk.ts";
import type { DefinitionFault } from "../model/definition-fault.ts";
import { BugError, type HostError } from "../model/errors.ts";
import { createIds } from "../model/ids.ts";
import type { RunnerPort } from "../model/runner-port.ts";
import { recordDirectory } from "../model/state-layout.ts";
import type { ChainHead } from "../record/audit/head.ts";
import { formatMismatchWarning } from "../record/audit/head-mismatch.ts";
import { readKey } from "../record/audit/key.ts";
import { getRunOwner } from "../model/vault.ts";
import type { Environment } from "../model/environment.ts";
import { openStore } from "../record/open.ts";
import type { RecordStore } from "../record/record-store.ts";
import { applyRetention, type RetentionDays } from "../record/apply-retention.ts";
import { keepIndexed } from "../record/search/keep-indexed.ts";
import { createRedactor } from "../redact/redactor.ts";
import { createVault } from "./create-vault.ts";
import { createApi, type InputCheck } from "../serve/api.ts";
import { apiRoutes } from "../serve/api-routes.ts";
import { type AttemptTokens, createAttemptTokens } from "../serve/attempt-token.ts";
import type { ServeDeps } from "../serve/deps.ts";
import { createInProcessTransport } from "../serve/in-process-transport.ts";
import { reportOutagesOnce } from "../serve/report-outages-once.ts";
import { createRecordProbe, type RecordProbe } from "../serve/record-probe.ts";
import { createFeedHub, type FeedHub } from "../show/feed-hub.ts";
import { createOwnerLookup } from "../show/owner-lookup.ts";
import { toPartialMessage } from "../show/feed-sources.ts";
import { checkToolInput } from "../submit/parameters.ts";
import { createLargeBodies } from "../serve/bodies/large-bodies.ts";
import { bodyThread } from "../serve/bodies/body-message.ts";
import { startThread } from "../define/start-thread.ts";
import { createHeavyTurns } from "../serve/heavy-turns.ts";
import { prepareRun, submitRun } from "../submit/submit.ts";
import { createSubmitMany, pauseAfterWork } from "../submit/submit-many.ts";
import { createAddressRules } from "../trigger/addresses.ts";
import { buildSchedules } from "../trigger/agent-schedules.ts";
import { createTriggerClock, type TriggerClock } from "../trigger/clock.ts";
import { createScheduleEditor } from "../trigger/schedule-editor.ts";
import type { Prepare } from "../trigger/settle-slots.ts";
import { createReceiver } from "../trigger/receive.ts";
import { createScheduler } from "../trigger/scheduler.ts";
import { createSecretBox } from "../trigger/secret-box.ts";
import { watchRecordFiles } from "./watch-record-files.ts";
import { type ApiClient, createApiClient } from "../wire/api-client.ts";

export interface OpenOptions {
  stateDirectory: string;
  /** The path of the second copy of the record's head. */
  headCopy?: string | undefined;
  /** The PostgreSQL database of a fleet. Without it, the record is in the state directory. */
  database?: DatabaseSettings | null;
  /** How long to wait for an unreachable database at startup. Default: 0. */
  databaseWaitMs?: number;
  /** Called once, when that wait starts. */
  onDatabaseUnreachable?: (error: HostError) => void;
  /** A directory of agent files to watch. */
  agentsDirectory?: string | null;
  /** Environment variables. The values of variables with a name like TOKEN or PASSWORD are redacted everywhere. */
  variables?: Environment;
  /** Holds back definitions that appear while the coordinator serves. Without it, all are used at once. */
  agentGate?: AgentGate | null;
  leaseMs?: number;
  pollHoldMs?: number;
  unmatchedMs?: number;
  rescueEveryMs?: number;
  /** Hosts and address ranges that webhooks may reach although they are not public. */
  webhookAllow?: readonly string[];
  retention?: RetentionDays;
  retentionEveryMs?: number;
  /** The free disk space below which no run is claimed. */
  minFreeBytes?: number;
  /** The size limit for one file of a run. */
  maxFileBytes?: number;
  onDefect?: (error: unknown, where: string) => void;
  /** Receives all faults of agent files each time they change. */
  onAgentFaults?: (faults: readonly DefinitionFault[]) => void;
  /** Whether to run schedules. A process that opens the record for one command does not. */
  firesSchedules?: boolean;
  /** Replaces the clock of schedules and webhooks. Receives the store's clock. */
  triggerClock?: (storeNow: () => Date) => TriggerClock;
  /** Wraps the opened record, for example to count writes. */
  instrument?: (store: RecordStore, onDefect: (error: unknown, where: string) => void) => RecordStore;
}

/** The dependencies of the API, except for those that the HTTP server adds. */
type OpenDeps = Omit<
  ServeDeps,
  | "metrics"
  | "backup"
  | "audit"
  | "prove"
  | "authEnabled"
  | "publicUrls"
  | "keepaliveMs"
  | "version"
  | "engine"
  | "startedAt"
  | "cookieName"
  | "webDirectory"
>;

export interface OpenCoordinator {
  deps: OpenDeps;
  /** For runners inside this process. */
  port: RunnerPort;
  store: RecordStore;
  agents: AgentRegistry;
  dispatcher: Dispatcher;
  hub: FeedHub;
  /** Ends streams and waiting polls, then closes the record. Idempotent. */
  stop(): Promise<void>;
}

/** Opens record, submission and dispatch without a network port. Callers use it over HTTP or by direct calls. */
export async function openCoordinator(options: OpenOptions): Promise<OpenCoordinator> {
  const now = (): Date => new Date();
  const newId = createIds(Date.now, (bytes) => void randomFillSync(bytes));
  const outages = reportOutagesOnce({
    report:
      options.onDefect ??
      ((error, where) => process.emitWarning(`${where}: ${String(error)}`, { code: "DROVER-BUG-001" })),
    isAvailable: async () => (await probe?.findError()) === null && (await record?.storageError()) === null,
  });
  const onDefect = outages.report;
  let probe: RecordProbe | null = null;
  let record: RecordStore | null = null;
  const cleanups: (() => unknown)[] = [outages.stop];
  try {
    const openedRecord = (record = await openRecord(options, now, onDefect));
    cleanups.push(() => openedRecord.close());
    const { findError: findProbeError } = (probe = createRecordProbe(openedRecord.storeId));
    const findRecordError = async (): Promise<unknown> => (await openedRecord.storageError()) ?? findProbeError();
    cleanups.push(watchRecordFiles(openedRecord, (error) => onDefect(error, "record")));
    const store = options.instrument?.(openedRecord, onDefect) ?? openedRecord;
    const key = options.database?.secret ?? readAuditKey(recordDirectory(options.stateDirectory));
    const attemptTokens = createAttemptTokens(key, await openedRecord.restoredAt());
    const vault = createVault(key, createRedactor({ variables: options.variables ?? {} }));
    const schemas = openSchemaChecker();
    cleanups.push(() => schemas.stop());
    const getSlotTimes = createSlotTimesFactory();
    const agents = createAgentRegistry(store, (agent, by) =>
      buildSchedules(agent, "agent", by, clock.now(), getSlotTimes),
    );
    const hub = createFeedHub({ onError: (error) => onDefect(error, "events") });
    cleanups.push(() => hub.stop());
    const heavyTurns = createHeavyTurns();
    const dispatcher = createDispatcher({
      ...toDispatchOptions(options, store, attemptTokens),
      openSealed: (run_id, sealed) => vault.open(getRunOwner(run_id), sealed),
      onPartials(partials) {
        for (const partial of partials) {
          publishPartial(hub, partial);
          store.broadcast(JSON.stringify(partial));
        }
      },
      waitForTurn: heavyTurns.waitForTurn,
      onError: (error) => onDefect(error, "dispatch"),
    });
    cleanups.push(() => dispatcher.stop());
    const largeBodies = createLargeBodies(() => startThread(bodyThread));
    cleanups.push(() => largeBodies.stop());
    const submitDeps = {
      store,
      createRun: dispatcher.createRun,
      agents,
      schemas,
      now: dispatcher.storeNow,
      newId,
      vault,
      waitForTurn: heavyTurns.waitForTurn,
    };
    const prepare: Prepare = (request, who) => prepareRun(request, who, submitDeps);
    const clock = (options.triggerClock ?? createTriggerClock)(dispatcher.storeNow);
    const scheduling = { store, prepare, getSlotTimes, clock };
    const scheduler = options.firesSchedules
      ? createScheduler({
          ...scheduling,
          isOnlyCoordinator: !options.database,
          onError: (error) => onDefect(error, "schedules"),
        })
      : null;
    if (options.agentsDirectory)
      cleanups.push(await followAgents(options.agentsDirectory, agents, schemas, scheduler, options));
    cleanups.push(store.changes((change) => hub.announce(change.runs)));
    // Another coordinator sent this message with `store.broadcast`, as above.
    cleanups.push(store.onBroadcast((text) => publishPartial(hub, JSON.parse(text) as PartialDelta)));
    cleanups.push(keepIndexed(store, (error) => onDefect(error, "search")));
    await dispatcher.start();
    scheduler?.start();
    cleanups.push(() => scheduler?.stop());
    const submit: OpenDeps["submit"] = (request, who) => submitRun(request, who, submitDeps);
    const secrets = createSecretBox(key);
    const deps: OpenDeps = {
      store,
      submit,
      pauseAfterWork: () => pauseAfterWork(heavyTurns.waitForTurn),
      submitMany: createSubmitMany(submitDeps),
      schedules: createScheduleEditor({ ...scheduling, now: clock.now, newId, vault }),
      triggers: {
        secrets,
        vault,
        addresses: createAddressRules(options.webhookAllow ?? []),
        receiver: createReceiver({ store, secrets, submit, now: dispatcher.storeNow, vault }),
      },
      dispatcher,
      heavyTurns,
      largeBodies,
      agents,
      checkAgent: (definition, requester) => checkSchemas(checkAgent(definition), schemas, requester),
      checkInput: (schema, input, requester) => checkToolInput(schema, input, schemas, requester),
      attemptTokens,
      hub,
      owners: createOwnerLookup(store.read),
      findRecordError,
      now,
      newId,
      onDefect,
    };
    let stopResult: Promise<void> | null = null;
    return {
      deps,
      port: dispatcher.port,
      store,
      agents,
      dispatcher,
      hub,
      stop: () => (stopResult ??= stopAll(cleanups)),
    };
  } catch (error) {
    await stopAll(cleanups);
    throw error;
  }
}

/** Creates a client of a coordinator in this process. It has the same calls and errors as over HTTP. */
export function createLocalClient({ deps, hub }: Pick<OpenCoordinator, "deps" | "hub">, check: InputCheck): ApiClient {
  // Direct calls have no open requests that a revoked token would have to end.
  const api = createApi({ ...deps, recheckTokens: async () => undefined }, apiRoutes, check);
  return createApiClient(createInProcessTransport(api, hub));
}

type PartialDelta = Parameters<typeof toPartialMessage>[0];

function publishPartial(hub: FeedHub, partial: PartialDelta): void {
  hub.sendLive(partial.run_id, toPartialMessage(partial));
}

async function openRecord(
  { stateDirectory, headCopy, database, databaseWaitMs = 0, onDatabaseUnreachable = () => undefined }: OpenOptions,
  now: () => Date,
  onDefect: (error: unknown, where: string) => void,
): Promise<RecordStore> {
  if (!database) {
    const directory = recordDirectory(stateDirectory);
    const onMismatch = (head: ChainHead | "missing", rows: number): void =>
      onDefect(new Error(formatMismatchWarning(directory, head, rows)), "audit");
    return openStore({ directory, headCopy, onMismatch, now, createIfMissing: true });
  }
  const { openPostgresStore } = await import("../record/postgres/open.ts");
  return waitForDatabase(() => openPostgresStore({ ...database, onError: (error) => onDefect(error, "database") }), {
    waitMs: databaseWaitMs,
    onUnreachable: onDatabaseUnreachable,
  });
}

export async function stopAll(cleanups: (() => unknown)[]): Promise<void> {
  for (const stop of cleanups.splice(0).toReversed()) await stop();
}

function toDispatchOptions(options: OpenOptions, store: RecordStore, attemptTokens: AttemptTokens) {
  return {
    store,
    now: () => new Date(),
    leaseMs: options.leaseMs ?? 10_000,
    pollHoldMs: options.pollHoldMs ?? 50_000,
    rescueEveryMs: options.rescueEveryMs ?? 1000,
    unmatchedMs: options.unmatchedMs ?? 300_000,
    signAttempt: attemptTokens.sign,
    ...(options.maxFileBytes === undefined ? {} : { maxFileBytes: options.maxFileBytes }),
    ...(options.database
      ? {}
      : {
          getLowDiskReason: createLowDiskCheck(
            recordDirectory(options.stateDirectory),
            options.minFreeBytes ?? 100 * 1024 * 1024,
          ),
        }),
    retention: {
      everyMs: options.retentionEveryMs ?? 3_600_000,
      prune: (signal: AbortSignal) => applyRetention(store, options.retention ?? {}, signal),
    },
  };
}

/** Reads the audit key, which the store created when it was first opened. */
function readAuditKey(directory: string): Uint8Array {
  const key = readKey(directory);
  if (key === null) throw new BugError("the store was opened for writing without an audit key");
  return key;
}
