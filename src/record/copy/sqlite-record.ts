import { open } from "node:fs/promises";
import { BugError } from "../../model/errors.ts";
import { blobFile } from "../blobs/blobs.ts";
import { isErrno } from "../errno.ts";
import type { Row } from "../query.ts";
import { runWork } from "../sqlite/run-work.ts";
import { connect, type Connection } from "../sqlite/connection.ts";
import { toHostError } from "../sqlite/errors.ts";
import { openConnection } from "../sqlite/open-connection.ts";
import { withRetries } from "../sqlite/with-retries.ts";
import { rollBack } from "../sqlite/write-lock.ts";
import { databaseFile } from "../../model/state-layout.ts";
import { getKey, measureLongColumns, maxPageBytes, maxPageRows, type ReadableRecord } from "./record-copy.ts";
import { buildPageStatement, type Table } from "./tables.ts";

const pieceBytes = 256 * 1024;

/**
 * Holds the write lock of a state directory's record. Other writers wait, and fail after five seconds with a lock error.
 */
export async function withLockedRecord<T>(
  directory: string,
  waitMs: number,
  work: (record: ReadableRecord) => Promise<T>,
): Promise<T> {
  const file = databaseFile(directory);
  const connection = await openConnection(file, "write", waitMs);
  try {
    await withRetries(() => connection.sql("begin immediate").run(), file, waitMs);
    try {
      return await work(createSqliteSource(connection, directory, (sha256) => openFileContent(directory, sha256)));
    } finally {
      rollBack(connection);
    }
  } catch (error) {
    throw toHostError(error, file);
  } finally {
    connection.close();
  }
}

/** Opens a backup. A finished backup never changes, so no lock is needed. */
export async function withBackup<T>(file: string, work: (record: ReadableRecord) => Promise<T>): Promise<T> {
  const connection = connect(file, "immutable");
  try {
    return await work(createSqliteSource(connection, file, (sha256) => openRowContent(connection, sha256)));
  } catch (error) {
    throw toHostError(error, file);
  } finally {
    connection.close();
  }
}

export function createSqliteSource(
  connection: Connection,
  name: string,
  openContent: ReadableRecord["openContent"],
): ReadableRecord {
  return {
    name,
    openContent,
    runWork: async (work) => runWork(connection, work),
    readPage: async (table, after) => readTablePage(connection, table, after),
  };
}

function readTablePage(connection: Connection, table: Table, after: Row | null): Row[] {
  const statement = connection.sql(buildPageStatement(table, after !== null));
  const rows: Row[] = [];
  let bytes = 0;
  for (const row of statement.iterate(...(after === null ? [] : getKey(table, after)), maxPageRows)) {
    rows.push(row);
    bytes += measureLongColumns(table, row);
    if (bytes >= maxPageBytes) break;
  }
  return rows;
}

async function openFileContent(directory: string, sha256: string): Promise<AsyncIterable<Uint8Array> | null> {
  const file = blobFile(directory, sha256);
  try {
    const handle = await open(file, "r");
    // The stream closes the handle, however it ends.
    return handle.createReadStream({ highWaterMark: pieceBytes });
  } catch (error) {
    if (isErrno(error, "ENOENT")) return null;
    throw toHostError(error, file);
  }
}

const selectPiece = `select bytes from backup_files where sha256 = ? and piece = ?`;

/** Also works for a backup that is being written. */
export async function openRowContent(
  connection: Connection,
  sha256: string,
): Promise<AsyncIterable<Uint8Array> | null> {
  const first = connection.sql(selectPiece).get(sha256, 0);
  return first === undefined ? null : readPieces(first);

  async function* readPieces(row: Row | undefined): AsyncGenerator<Uint8Array> {
    for (
      let [piece, next] = [0, row];
      next !== undefined;
      next = connection.sql(selectPiece).get(sha256, (piece += 1))
    ) {
      if (!(next["bytes"] instanceof Uint8Array)) throw new BugError("a piece of a file is not bytes");
      yield next["bytes"];
    }
  }
}
