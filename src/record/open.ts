import { existsSync } from "node:fs";
import { BugError } from "../model/errors.ts";
import type { Blobs } from "../model/file.ts";
import type { Redactor } from "../model/process.ts";
import type { Op, Reads, ResultOf, Store } from "../model/store.ts";
import { openChanges, type Changes } from "./changes.ts";
import { readEvents, readFeed } from "./reads/events.ts";
import { readExecution, readExecutions } from "./reads/executions.ts";
import { readRun, readRuns } from "./reads/runs.ts";
import type { Connection } from "./sqlite/connection.ts";
import { hostFault } from "./sqlite/faults.ts";
import { openConnection } from "./sqlite/open-connection.ts";
import { patiently } from "./sqlite/patience.ts";
import { createStateDirectory, databaseFile } from "./state-directory.ts";
import { openWriter, type Writer } from "./writer.ts";

export interface StoreOptions {
  directory: string;
  now: () => Date;
  /** Without it, a directory that has no database is an error. */
  createIfMissing?: boolean;
  /** "read" needs neither the audit key nor a writable directory. */
  mode?: "read" | "write";
  /** Applied to every operation before it is stored. Callers that have redacted leave it out. */
  redactor?: Redactor;
  /** How long a locked database is waited for. */
  lockWaitMs?: number;
}

export interface SqliteStore extends Store {
  readonly directory: string;
  readonly connection: Connection;
  readonly lockWaitMs: number;
  readonly now: () => Date;
  /** Of this record and its backups alone, whatever directory it lies in. */
  storeId(): Promise<string>;
  /** Looks whether another process has written, and tells the listeners of `changes` if so. */
  lookForForeign(): void;
}

export const defaultLockWaitMs = 5000;

const selectStoreId = `select store_id from store`;

export async function openStore(options: StoreOptions): Promise<SqliteStore> {
  const { directory, now, redactor, mode = "write", lockWaitMs = defaultLockWaitMs } = options;
  const file = databaseFile(directory);
  if (options.createIfMissing && !existsSync(file)) createStateDirectory(directory);
  const connection = await openConnection(file, mode, lockWaitMs);
  try {
    const { listen, publish, lookForForeign }: Changes = openChanges(connection);
    const writer =
      mode === "read" ? null : await openWriter({ directory, connection, waitMs: lockWaitMs, now, changed: publish });
    return {
      directory,
      connection,
      lockWaitMs,
      now,
      apply: (ops) => apply(writer, redactor === undefined ? ops : redactor.value(ops)),
      storeId: () => reading(() => readStoreId(connection), connection, lockWaitMs),
      read: readsOf(connection, lockWaitMs),
      blobs: lazyBlobs(directory),
      changes: listen,
      lookForForeign,
      async close() {
        await writer?.close();
        connection.close();
      },
    };
  } catch (fault) {
    connection.close();
    throw hostFault(fault, file);
  }
}

async function apply<const T extends readonly Op[]>(
  writer: Writer | null,
  ops: T,
): Promise<{ [K in keyof T]: ResultOf<T[K]> }> {
  if (writer === null) throw new BugError("a store opened for reading cannot apply operations");
  // One result per operation, in their order: the array has the shape of T.
  return (await writer.apply(ops)) as { [K in keyof T]: ResultOf<T[K]> };
}

function readStoreId(connection: Connection): string {
  const row = connection.sql(selectStoreId).get();
  if (row === undefined) throw new BugError(`${connection.file} has lost the id that its schema gave it`);
  return String(row["store_id"]);
}

/** As with the other reads: a cold `exec` has no files. */
function lazyBlobs(directory: string): Blobs {
  return {
    put: async (content, announced, signal) =>
      (await import("./blobs/blobs.ts")).putBlob(directory, content, announced, signal),
    open: async (sha256) => (await import("./blobs/blobs.ts")).openBlob(directory, sha256),
  };
}

type OtherReads = typeof import("./reads/other.ts");

function readsOf(connection: Connection, waitMs: number): Reads {
  // A cold `exec` never needs these, and does not load them. Once: an import that is repeated is not for nothing.
  let loaded: Promise<OtherReads> | null = null;
  const other = (): Promise<OtherReads> => (loaded ??= import("./reads/other.ts"));
  const now = <T>(read: () => T): Promise<T> => reading(read, connection, waitMs);
  return {
    run: (run_id) => now(() => readRun(connection, run_id)),
    runs: (filter, page) => now(() => readRuns(connection, filter, page)),
    events: (run_id, after, limit) => now(() => readEvents(connection, run_id, after, limit)),
    feed: (after, limit) => now(() => readFeed(connection, after, limit)),
    execution: (execution_id) => now(() => readExecution(connection, execution_id)),
    executions: (filter, page) => now(() => readExecutions(connection, filter, page)),
    runner: (runner_id) => later(({ readRunner }) => readRunner(connection, runner_id)),
    runners: () => later(({ readRunners }) => readRunners(connection)),
    agents: (name) => later(({ readAgents }) => readAgents(connection, name)),
    open_runs: () => later(({ readOpenRuns }) => readOpenRuns(connection)),
    has_work: (runner_id) => later(({ readHasWork }) => readHasWork(connection, runner_id)),
    why: (run_id) => later(({ readWhy }) => readWhy(connection, run_id)),
    agent_of: (run_id) => later(({ readAgentOf }) => readAgentOf(connection, run_id)),
    session: (session_id) => later(({ readSession }) => readSession(connection, session_id)),
    sessions: (filter, page) => later(({ readSessions }) => readSessions(connection, filter, page)),
    versions: (session_id) => later(({ readVersions }) => readVersions(connection, session_id)),
    gone_sessions: (session_ids) => later(({ readGoneSessions }) => readGoneSessions(connection, session_ids)),
    files: (run_id) => later(({ readFiles }) => readFiles(connection, run_id)),
    file: (run_id, path) => later(({ readFile }) => readFile(connection, run_id, path)),
    token: (hash) => later(({ readToken }) => readToken(connection, hash)),
    tokens: (page) => later(({ readTokens }) => readTokens(connection, page)),
  };

  async function later<T>(read: (reads: OtherReads) => T): Promise<T> {
    const reads = await other();
    return now(() => read(reads));
  }
}

/** A reader is refused while another process repairs the WAL of one that died, and asks again. */
async function reading<T>(read: () => T, { file }: Connection, waitMs: number): Promise<T> {
  try {
    return await patiently(read, file, waitMs);
  } catch (fault) {
    throw hostFault(fault, file);
  }
}
