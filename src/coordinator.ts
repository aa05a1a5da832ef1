import { randomFillSync } from "node:crypto";
import { statfsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openMetrics } from "./coordinator-metrics.ts";
import { openSchemaChecker } from "./define/json-schema/checker.ts";
import type { DatabasePlace } from "./define/database.ts";
import { watchAgents } from "./define/watch-agents.ts";
import { type AgentBook, createAgentBook } from "./dispatch/agents.ts";
import { createDispatcher, type Dispatcher } from "./dispatch/dispatcher.ts";
import { type DefinitionFault, describeFault } from "./model/definition-fault.ts";
import { BugError } from "./model/errors.ts";
import { createIds } from "./model/ids.ts";
import type { RunnerPort } from "./model/runner-port.ts";
import { backupStore } from "./record/backup.ts";
import { pruneAudit } from "./record/audit/prune.ts";
import { readKey } from "./record/audit/key.ts";
import { openStore } from "./record/open.ts";
import type { RecordStore } from "./record/record-store.ts";
import { pruneDispatch } from "./record/retention-dispatch.ts";
import { createApp } from "./serve/app.ts";
import { type AttemptTokens, createAttemptTokens } from "./serve/attempt-token.ts";
import { fleetAdminToken } from "./serve/fleet-admin-token.ts";
import { listen, refuseOpenDoor } from "./serve/listen.ts";
import { ensureAdminToken } from "./serve/token-file.ts";
import { createFeedHub, type FeedHub } from "./show/feed-hub.ts";
import { createOwners } from "./show/owners.ts";
import { partialMessage } from "./show/tail.ts";
import { submitRun } from "./submit/submit.ts";

/** Set by the bundler. */
declare const DROVER_VERSION: string;

export interface CoordinatorOptions {
  stateDirectory: string;
  /** The record of a fleet, in PostgreSQL; else it lies in the state directory. */
  database?: DatabasePlace | null;
  host?: string;
  /** 0: whichever is free. */
  port?: number;
  /** A folder of agent files, watched; null: none. */
  agentsDirectory?: string | null;
  authEnabled?: boolean;
  publicUrls?: readonly string[];
  leaseMs?: number;
  pollHoldMs?: number;
  unmatchedMs?: number;
  rescueEveryMs?: number;
  /** Finished runs (and audit rows) older than this are removed; null: kept. */
  runRetentionDays?: number | null;
  auditRetentionDays?: number | null;
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
  const now = (): Date => new Date();
  const newId = createIds(Date.now, (bytes) => void randomFillSync(bytes));
  const onDefect =
    options.onDefect ??
    ((error, where) => process.emitWarning(`${where}: ${String(error)}`, { code: "DROVER-BUG-001" }));

  const stops: (() => unknown)[] = [];
  try {
    const version = options.version ?? DROVER_VERSION;
    const opened = await openRecord(options, now, onDefect);
    stops.push(() => opened.close());
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
      store,
      submit: (request, who) => submitRun(request, who, { store, agents, schemas, now, newId }),
      dispatcher,
      agents,
      checkSchema: async (schema) => (await schemas.checkSchema(schema)).faults,
      attemptTokens,
      hub,
      owners: createOwners(store.read),
      metrics,
      backup: () => backup(options),
      now,
      newId,
      authEnabled,
      publicUrls: options.publicUrls ?? [],
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
  { stateDirectory, database }: CoordinatorOptions,
  now: () => Date,
  onDefect: (error: unknown, where: string) => void,
): Promise<RecordStore> {
  if (!database) return openStore({ directory: stateDirectory, now, createIfMissing: true });
  const { openPostgresStore } = await import("./record/postgres/open.ts");
  return openPostgresStore({ ...database, onFault: (fault) => onDefect(fault, "database") });
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
    retention: { everyMs: 3_600_000, prune: () => prune(options, store) },
  };
}

async function prune({ runRetentionDays, auditRetentionDays }: CoordinatorOptions, store: RecordStore): Promise<void> {
  if (runRetentionDays) await pruneDispatch(store, daysAgo(runRetentionDays));
  if (auditRetentionDays) await pruneAudit(store, daysAgo(auditRetentionDays));
  await store.pruneBlobs(store.now());
}

function daysAgo(days: number): Date {
  return new Date(Date.now() - days * 86_400_000);
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

/** In a folder of its own: it holds the key. */
async function backup({ stateDirectory, database }: CoordinatorOptions): Promise<BackupFile> {
  const folder = await mkdtemp(join(database ? tmpdir() : stateDirectory, "backup-"));
  const file = join(folder, "drover.db");
  const dispose = (): Promise<void> => rm(folder, { recursive: true, force: true });
  try {
    if (database) {
      const { backupPostgres } = await import("./record/copy/backup-postgres.ts");
      await backupPostgres(database, file, new Date());
    } else {
      await backupStore({ directory: stateDirectory, file }, new Date());
    }
  } catch (error) {
    await dispose();
    throw error;
  }
  return { file, dispose };
}

interface BackupFile {
  file: string;
  dispose(): Promise<void>;
}
