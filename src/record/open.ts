import { existsSync } from "node:fs";
import { BugError } from "../model/errors.ts";
import type { Redactor } from "../model/process.ts";
import type { Op, OpResult, Reads, Store } from "../model/store.ts";
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
}

export const defaultLockWaitMs = 5000;

export async function openStore(options: StoreOptions): Promise<SqliteStore> {
  const { directory, now, redactor, mode = "write", lockWaitMs = defaultLockWaitMs } = options;
  const file = databaseFile(directory);
  if (options.createIfMissing && !existsSync(file)) createStateDirectory(directory);
  const connection = await openConnection(file, mode, lockWaitMs);
  try {
    const writer = mode === "read" ? null : await openWriter({ directory, connection, waitMs: lockWaitMs, now });
    return {
      directory,
      connection,
      lockWaitMs,
      now,
      apply: (ops) => apply(writer, redactor === undefined ? ops : redactor.value(ops)),
      read: readsOf(connection, lockWaitMs),
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

async function apply<const T extends readonly Op[]>(writer: Writer | null, ops: T): Promise<{ [K in keyof T]: OpResult }> {
  if (writer === null) throw new BugError("a store opened for reading cannot apply operations");
  // One result per operation, in their order: the array has the shape of T.
  return (await writer.apply(ops)) as { [K in keyof T]: OpResult };
}

/** A reader is refused while another process repairs the WAL of one that died, and asks again. */
function readsOf(connection: Connection, waitMs: number): Reads {
  return {
    run: (run_id) => reading(() => readRun(connection, run_id)),
    runs: (filter, page) => reading(() => readRuns(connection, filter, page)),
    events: (run_id, after, limit) => reading(() => readEvents(connection, run_id, after, limit)),
    feed: (after, limit) => reading(() => readFeed(connection, after, limit)),
    execution: (execution_id) => reading(() => readExecution(connection, execution_id)),
    executions: (filter, page) => reading(() => readExecutions(connection, filter, page)),
  };

  async function reading<T>(read: () => T): Promise<T> {
    try {
      return await patiently(read, connection.file, waitMs);
    } catch (fault) {
      throw hostFault(fault, connection.file);
    }
  }
}
