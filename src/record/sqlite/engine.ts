import type { Engine } from "../engine.ts";
import type { Work } from "../query.ts";
import { rollBack, runUnderWriteLock } from "./write-lock.ts";
import { runWork, runWorkYielding } from "./run-work.ts";
import type { Connection } from "./connection.ts";
import { toHostError } from "./errors.ts";
import { openConnection } from "./open-connection.ts";
import { withRetries } from "./with-retries.ts";
import { searchStatements } from "./search-statements.ts";

export interface SqliteEngine extends Engine {
  readonly connection: Connection;
  close(): void;
}

export async function openSqliteEngine(file: string, mode: "read" | "write", waitMs: number): Promise<SqliteEngine> {
  const connection = await openConnection(file, mode, waitMs);
  const read: SqliteEngine["read"] = (work) => readWithRetries(connection, waitMs, () => runWork(connection, work()));
  return {
    kind: "sqlite",
    name: file,
    connection,
    search: searchStatements,
    read,
    readPage: read,
    snapshot: (work) => readSnapshot(file, waitMs, work),
    write: (work) => runUnderWriteLock(connection, waitMs, () => runWork(connection, work())),
    close: connection.close,
  };
}

/** A read fails while another process recovers the WAL of one that died, so it is retried. */
async function readWithRetries<T>(connection: Connection, waitMs: number, read: () => T): Promise<T> {
  try {
    return await withRetries(read, connection.file, waitMs);
  } catch (error) {
    throw toHostError(error, connection.file);
  }
}

/** Uses its own connection, because it may take a long time while others read and write. */
async function readSnapshot<T>(file: string, waitMs: number, work: () => Work<T>): Promise<T> {
  const connection = await openConnection(file, "read", waitMs);
  try {
    await withRetries(() => beginReading(connection), file, waitMs);
    return await runWorkYielding(connection, work());
  } catch (error) {
    throw toHostError(error, file);
  } finally {
    rollBack(connection);
    connection.close();
  }
}

/** The first read determines the snapshot. */
function beginReading(connection: Connection): void {
  connection.sql("begin").run();
  try {
    connection.sql("select 1 from store").get();
  } catch (error) {
    rollBack(connection);
    throw error;
  }
}
