import { randomBytes, randomFillSync } from "node:crypto";
import { statfsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { openSchemaChecker } from "./define/json-schema/checker.ts";
import { watchAgents } from "./define/watch-agents.ts";
import { type AgentBook, createAgentBook } from "./dispatch/agents.ts";
import { createDispatcher, type Dispatcher } from "./dispatch/dispatcher.ts";
import { type DefinitionFault, describeFault } from "./model/definition-fault.ts";
import { BugError } from "./model/errors.ts";
import { createIds } from "./model/ids.ts";
import type { RunnerPort } from "./model/runner-port.ts";
import { backupStore } from "./record/backup.ts";
import { pruneBlobs } from "./record/blobs/prune-blobs.ts";
import { pruneAudit } from "./record/audit/prune.ts";
import { readKey } from "./record/audit/key.ts";
import { openStore, type SqliteStore } from "./record/open.ts";
import { pruneDispatch } from "./record/retention-dispatch.ts";
import { createApp } from "./serve/app.ts";
import { type AttemptTokens, createAttemptTokens } from "./serve/attempt-token.ts";
import { listen, refuseOpenDoor } from "./serve/listen.ts";
import { createMetrics, type Metrics } from "./serve/metrics.ts";
import { ensureAdminToken } from "./serve/token-file.ts";
import { createFeedHub, type FeedHub } from "./show/feed-hub.ts";
import { createOwners } from "./show/owners.ts";
import { partialMessage } from "./show/tail.ts";
import { submitRun } from "./submit/submit.ts";

/** Set by the bundler. */
declare const DROVER_VERSION: string;

export interface CoordinatorOptions {
  stateDirectory: string;
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
  store: SqliteStore;
  agents: AgentBook;
  dispatcher: Dispatcher;
  /** No new requests, every stream and held poll ended, everything stored. Idempotent. */
  stop(): Promise<void>;
}

/** Store, submit, dispatch and HTTP, put together over one state directory. */
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
    const store = await openStore({ directory, now, createIfMissing: true });
    stops.push(() => store.close());
    const adminToken = await ensureAdminToken(directory, store, now, newId);
    const attemptTokens = attemptTokensOf(directory);
    const schemas = openSchemaChecker();
    stops.push(() => schemas.stop());
    const agents = createAgentBook(store);
    const hub = createFeedHub({ onFault: (error) => onDefect(error, "events") });
    const dispatcher = createDispatcher({
      ...dispatchOptions(options, store, attemptTokens),
      onPartials: (partials) => partials.forEach((one) => hub.live(one.run_id, partialMessage(one))),
      onFault: (fault) => onDefect(fault, "dispatch"),
    });
    stops.push(() => dispatcher.stop());
    if (options.agentsDirectory)
      stops.push(await followFolder(options.agentsDirectory, agents, schemas, options.onAgentFaults));
    stops.push(store.changes((change) => hub.changed(change.foreign ? null : change.runs)));
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
      metrics: metricsOf(store, hub),
      backup: () => backup(directory),
      now,
      newId,
      authEnabled,
      publicUrls: options.publicUrls ?? [],
      version: options.version ?? DROVER_VERSION,
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

async function stopAll(stops: (() => unknown)[]): Promise<void> {
  for (const stop of stops.splice(0).toReversed()) await stop();
}

function dispatchOptions(options: CoordinatorOptions, store: SqliteStore, attemptTokens: AttemptTokens) {
  return {
    store,
    now: () => new Date(),
    leaseMs: options.leaseMs ?? 10_000,
    pollHoldMs: options.pollHoldMs ?? 30_000,
    rescueEveryMs: options.rescueEveryMs ?? 1000,
    unmatchedMs: options.unmatchedMs ?? 300_000,
    signAttempt: attemptTokens.sign,
    ...(options.maxFileBytes === undefined ? {} : { maxFileBytes: options.maxFileBytes }),
    lowDisk: lowDisk(options.stateDirectory, options.minFreeBytes ?? 100 * 1024 * 1024),
    retention: { everyMs: 3_600_000, prune: () => prune(options, store) },
  };
}

async function prune({ runRetentionDays, auditRetentionDays }: CoordinatorOptions, store: SqliteStore): Promise<void> {
  if (runRetentionDays) await pruneDispatch(store, daysAgo(runRetentionDays));
  if (auditRetentionDays) await pruneAudit(store, daysAgo(auditRetentionDays));
  await pruneBlobs(store, store.now());
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

/** The key of the audit trail, which the store has made by now. */
function attemptTokensOf(directory: string): AttemptTokens {
  const key = readKey(directory);
  if (key === null) throw new BugError("the store was opened for writing without an audit key");
  return createAttemptTokens(key);
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

function metricsOf(store: SqliteStore, hub: FeedHub): Metrics {
  const metrics = createMetrics({ drover_http_requests_total: "Requests answered, by route and status." });
  metrics.gauge("drover_runs", "Runs that have not ended, by state.", async () =>
    Object.entries(await store.read.open_runs()).map(([status, value]) => ({ labels: { status }, value })),
  );
  metrics.gauge("drover_runners", "Runners, by state.", async () => {
    const counts = new Map<string, number>();
    for (const { status } of await store.read.runners()) counts.set(status, (counts.get(status) ?? 0) + 1);
    return [...counts].map(([status, value]) => ({ labels: { status }, value }));
  });
  metrics.gauge("drover_event_streams", "Readers that follow events now.", () => hub.followers);
  metrics.gauge("drover_resident_bytes", "Memory of this process.", () => process.memoryUsage.rss());
  metrics.gauge("drover_uptime_seconds", "Since this process started.", () => Math.round(process.uptime()));
  return metrics;
}

async function backup(directory: string): Promise<{ file: string; dispose(): Promise<void> }> {
  const file = join(directory, `backup-${randomBytes(8).toString("hex")}.db`);
  const dispose = (): Promise<void> => rm(file, { force: true });
  try {
    await backupStore({ directory, file }, new Date());
  } catch (error) {
    await dispose();
    throw error;
  }
  return { file, dispose };
}
