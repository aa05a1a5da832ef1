import { randomFillSync } from "node:crypto";
import { statfsSync } from "node:fs";
import { openBackups } from "./coordinator-backup.ts";
import { openOnceThere } from "./coordinator-database.ts";
import { openMetrics } from "./coordinator-metrics.ts";
import { pruneUntil, type RetentionDays } from "./coordinator-retention.ts";
import { openSchemaChecker } from "./define/json-schema/checker.ts";
import type { DatabasePlace } from "./define/database.ts";
import { watchAgents } from "./define/watch-agents.ts";
import { type AgentBook, createAgentBook } from "./dispatch/agents.ts";
import { createDispatcher, type Dispatcher } from "./dispatch/dispatcher.ts";
import { type DefinitionFault, describeFault } from "./model/definition-fault.ts";
import { BugError, type HostError } from "./model/errors.ts";
import { createIds } from "./model/ids.ts";
import type { RunnerPort } from "./model/runner-port.ts";
import { readKey } from "./record/audit/key.ts";
import { openStore } from "./record/open.ts";
import type { RecordStore } from "./record/record-store.ts";
import { createApp } from "./serve/app.ts";
import { type AttemptTokens, createAttemptTokens } from "./serve/attempt-token.ts";
import { fleetAdminToken } from "./serve/fleet-admin-token.ts";
import { createLentTokens } from "./serve/lent-tokens.ts";
import { listen, refuseOpenDoor, refusePublicUrls } from "./serve/listen.ts";
import { tellOutagesOnce } from "./serve/outages.ts";
import { createRecordProbe, type RecordProbe } from "./serve/record-probe.ts";
import { ensureAdminToken } from "./serve/token-file.ts";
import { hashToken } from "./serve/token-text.ts";
import { createFeedHub, type FeedHub } from "./show/feed-hub.ts";
import { createOwners } from "./show/owners.ts";
import { partialMessage } from "./show/tail.ts";
import { submitRun } from "./submit/submit.ts";

/** Set by the bundler. */
declare const DROVER_VERSION: string;

export interface CoordinatorOptions extends RetentionDays {
  stateDirectory: string;
  /** The record of a fleet, in PostgreSQL; else it lies in the state directory. */
  database?: DatabasePlace | null;
  /** How long one that is away is waited for at the start; not at all unless given. */
  databaseWaitMs?: number;
  /** Once, when that begins. */
  onDatabaseAway?: (fault: HostError) => void;
  host?: string;
  /** 0: whichever is free. */
  port?: number;
  /** A folder of agent files, watched; null: none. */
  agentsDirectory?: string | null;
  authEnabled?: boolean;
  publicUrls?: readonly string[];
  leaseMs?: number;
  pollHoldMs?: number;
  /** How often a poll that is held says that it still is. */
  pollSignMs?: number;
  unmatchedMs?: number;
  rescueEveryMs?: number;
  retentionEveryMs?: number;
  /** Below it nothing new is claimed. */
  minFreeBytes?: number;
  /** The largest file of a run that is taken. */
  maxFileBytes?: number;
  version?: string;
  onDefect?: (error: unknown, where: string) => void;
  /** Faults of agent files, all of them, each time they change. */
  onAgentFaults?: (faults: readonly DefinitionFault[]) => void;
}

export interface Coordinator {
  url: string;
  adminToken: string;
  /** For a runner that this process starts as one of its own: it may act as a runner, here, and while this one serves. */
  lendRunnerToken(): Promise<string>;
  /** For runners inside this process. */
  port: RunnerPort;
  store: RecordStore;
  agents: AgentBook;
  dispatcher: Dispatcher;
  /** No new requests, every stream and held poll ended, everything stored. Idempotent. */
  stop(): Promise<void>;
}

/** Store, submit, dispatch and HTTP, put together over one record. */
export async function startCoordinator(options: CoordinatorOptions): Promise<Coordinator> {
  const { stateDirectory: directory, host = "127.0.0.1", port = 8765, authEnabled = true } = options;
  refuseOpenDoor({ host, authEnabled });
  refusePublicUrls(options.publicUrls ?? []);
  const now = (): Date => new Date();
  const newId = createIds(Date.now, (bytes) => void randomFillSync(bytes));
  const outages = tellOutagesOnce({
    tell:
      options.onDefect ??
      ((error, where) => process.emitWarning(`${where}: ${String(error)}`, { code: "DROVER-BUG-001" })),
    isBack: async () => (await probe?.fault()) === null,
  });
  const onDefect = outages.tell;
  let probe: RecordProbe | null = null;

  const stops: (() => unknown)[] = [outages.stop];
  try {
    const version = options.version ?? DROVER_VERSION;
    const opened = await openRecord(options, now, onDefect);
    stops.push(() => opened.close());
    const { fault: recordFault } = (probe = createRecordProbe(opened.storeId));
    const metrics = openMetrics(opened, {
      version,
      directory: options.database ? null : directory,
      onFault: (fault) => onDefect(fault, "metrics"),
    });
    stops.push(metrics.stop);
    const { store } = metrics;
    const adminToken = options.database
      ? await fleetAdminToken(options.database.secret, store, now, newId)
      : await ensureAdminToken(directory, store, now, newId);
    const backups = await openBackups(options);
    stops.push(backups.stop);
    const lentTokens = createLentTokens(store.read);
    const attemptTokens = createAttemptTokens(options.database?.secret ?? auditKey(directory));
    const schemas = openSchemaChecker();
    stops.push(() => schemas.stop());
    const agents = createAgentBook(store);
    const hub = createFeedHub({ onFault: (error) => onDefect(error, "events") });
    const dispatcher = createDispatcher({
      ...dispatchOptions(options, store, attemptTokens),
      onPartials(partials) {
        for (const one of partials) {
          showPartial(hub, one);
          store.tellOthers(JSON.stringify(one));
        }
      },
      onFault: (fault) => onDefect(fault, "dispatch"),
    });
    stops.push(() => dispatcher.stop());
    if (options.agentsDirectory)
      stops.push(await followFolder(options.agentsDirectory, agents, schemas, options.onAgentFaults));
    stops.push(store.changes((change) => hub.changed(change.runs)));
    // Written by another coordinator, right above.
    stops.push(store.othersTell((text) => showPartial(hub, JSON.parse(text) as Partial)));
    metrics.watchWaiting(() => ({ followers: hub.followers, polls: dispatcher.polls }));
    await dispatcher.start();
    const app = createApp({
      store: { ...store, read: { ...store.read, token: lentTokens.token } },
      submit: (request, who) => submitRun(request, who, { store, agents, schemas, now: dispatcher.storeNow, newId }),
      dispatcher,
      agents,
      checkSchema: async (schema) => (await schemas.checkSchema(schema)).faults,
      attemptTokens,
      hub,
      owners: createOwners(store.read),
      metrics,
      recordFault,
      backup: backups.make,
      now,
      newId,
      authEnabled,
      publicUrls: options.publicUrls ?? [],
      ...(options.pollSignMs === undefined ? {} : { pollSignMs: options.pollSignMs }),
      version,
      onDefect,
    });
    const server = await listen(app, { host, port, authEnabled });
    // streams and held polls first: they would keep the server waiting
    stops.push(async () => {
      hub.stop();
      await Promise.all([dispatcher.stop(), server.close(2000)]);
    });
    let stopping: Promise<void> | null = null;
    return {
      url: server.url,
      adminToken,
      async lendRunnerToken() {
        // whose its runners are that were registered with the admin token itself
        const subject = (await store.read.token(hashToken(adminToken)))?.subject ?? "admin";
        const label = "runner of this coordinator's own process";
        return lentTokens.lend({ token_id: newId(), role: "runner", subject, label, created_at: now().toISOString() });
      },
      port: dispatcher.port,
      store,
      agents,
      dispatcher,
      stop: () => (stopping ??= stopAll(stops)),
    };
  } catch (error) {
    await stopAll(stops);
    throw error;
  }
}

type Partial = Parameters<typeof partialMessage>[0];

function showPartial(hub: FeedHub, partial: Partial): void {
  hub.live(partial.run_id, partialMessage(partial));
}

async function openRecord(
  { stateDirectory, database, databaseWaitMs = 0, onDatabaseAway = () => undefined }: CoordinatorOptions,
  now: () => Date,
  onDefect: (error: unknown, where: string) => void,
): Promise<RecordStore> {
  if (!database) return openStore({ directory: stateDirectory, now, createIfMissing: true });
  const { openPostgresStore } = await import("./record/postgres/open.ts");
  return openOnceThere(() => openPostgresStore({ ...database, onFault: (fault) => onDefect(fault, "database") }), {
    waitMs: databaseWaitMs,
    onAway: onDatabaseAway,
  });
}

async function stopAll(stops: (() => unknown)[]): Promise<void> {
  for (const stop of stops.splice(0).toReversed()) await stop();
}

function dispatchOptions(options: CoordinatorOptions, store: RecordStore, attemptTokens: AttemptTokens) {
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
      : { lowDisk: lowDisk(options.stateDirectory, options.minFreeBytes ?? 100 * 1024 * 1024) }),
    retention: {
      everyMs: options.retentionEveryMs ?? 3_600_000,
      prune: (signal: AbortSignal) => pruneUntil(signal, options, store),
    },
  };
}

/** Asked with every claim, looked up once a second. */
function lowDisk(directory: string, minFreeBytes: number): () => string | null {
  let lookedAt = -Infinity;
  let answer: string | null = null;
  return () => {
    if (performance.now() - lookedAt < 1000) return answer;
    lookedAt = performance.now();
    const { bavail, bsize } = statfsSync(directory);
    const free = bavail * bsize;
    answer =
      free >= minFreeBytes
        ? null
        : `only ${Math.floor(free / 1048576)} MB are free where ${directory} lies; nothing new is started below ${Math.ceil(minFreeBytes / 1048576)} MB`;
    return answer;
  };
}

/** Which the store has made by now. */
function auditKey(directory: string): Uint8Array {
  const key = readKey(directory);
  if (key === null) throw new BugError("the store was opened for writing without an audit key");
  return key;
}

/** Resolves once the folder has been read for the first time. */
async function followFolder(
  folder: string,
  agents: AgentBook,
  schemas: ReturnType<typeof openSchemaChecker>,
  onFaults: CoordinatorOptions["onAgentFaults"],
): Promise<() => Promise<void>> {
  const tell =
    onFaults ??
    ((faults) => faults.forEach((fault) => process.emitWarning(describeFault(fault), { code: fault.code })));
  return new Promise((resolve) => {
    const watching = watchAgents(
      folder,
      schemas,
      ({ agents: loaded, faults }) => {
        agents.setFiles(loaded.map(({ agent }) => agent));
        if (faults.length > 0) tell(faults);
        resolve(() => watching.stop());
      },
      new AbortController().signal,
    );
  });
}
