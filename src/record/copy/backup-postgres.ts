import { createMac } from "../../model/hmac.ts";
import { isSealedWith } from "../audit/is-sealed-with.ts";
import { addExtras, writeBackup } from "../backup-file.ts";
import { createBackupFiles, insertPiece } from "../blobs/backup-blobs.ts";
import { createWrongSecretError } from "../postgres/errors.ts";
import type { Row } from "../query.ts";
import { connect, type Connection } from "../sqlite/connection.ts";
import { migrate } from "../sqlite/migrations/migrate.ts";
import { copyRecord } from "./copy-record.ts";
import { withSnapshot } from "./postgres-record.ts";
import { type WritableRecord, type ReadableRecord, getValues } from "./record-copy.ts";
import { openRowContent, createSqliteSource } from "./sqlite-record.ts";
import { buildInsertStatement, type Table } from "./tables.ts";

const rowsPerBatch = 100;

/** Backs up a consistent snapshot while coordinators keep writing. */
export function backupPostgres(
  { url, secret }: { url: string; secret: Uint8Array },
  file: string,
  now: Date,
  signal?: AbortSignal,
): Promise<{ head: string }> {
  return writeBackup(file, (part) => {
    const work = async (from: ReadableRecord): Promise<{ head: string }> => {
      // A backup with the wrong key in it could never be restored.
      if (!(await from.runWork(isSealedWith(createMac(secret))))) throw createWrongSecretError(url);
      return fillBackup(part, { secret, now, signal }, from);
    };
    return withSnapshot(url, work, signal);
  });
}

interface BackupContext {
  secret: Uint8Array;
  now: Date;
  signal: AbortSignal | undefined;
}

async function fillBackup(
  part: string,
  { secret, now, signal }: BackupContext,
  from: ReadableRecord,
): Promise<{ head: string }> {
  const copy = connect(part, "write");
  try {
    await migrate(copy, 0);
    // writeBackup syncs the whole file at the end.
    copy.exec("pragma journal_mode = delete; pragma synchronous = off");
    copy.exec("begin");
    // Every new record contains one row. Remove it, because the copy contains it too.
    copy.exec("delete from demands");
    createBackupFiles(copy);
    await copyRecord(from, createWritableRecord(copy, part), () => signal?.throwIfAborted());
    const head = addExtras(copy, secret, now);
    copy.exec("commit");
    return { head };
  } finally {
    copy.close();
  }
}

function createWritableRecord(copy: Connection, part: string): WritableRecord {
  return {
    ...createSqliteSource(copy, part, (sha256) => openRowContent(copy, sha256)),
    insert: (table, rows) => insertRows(copy, table, rows),
    async addContent(sha256, pieces) {
      let piece = 0;
      for await (const bytes of pieces) copy.sql(insertPiece).run(sha256, piece++, bytes);
      // Empty content is one empty piece.
      if (piece === 0) copy.sql(insertPiece).run(sha256, 0, new Uint8Array());
    },
    flush: async () => undefined,
  };
}

/** Inserts in batches, so that a coordinator keeps serving. */
async function insertRows(copy: Connection, table: Table, rows: readonly Row[]): Promise<void> {
  const statement = copy.sql(buildInsertStatement(table, 1));
  for (let from = 0; from < rows.length; from += rowsPerBatch) {
    for (const row of rows.slice(from, from + rowsPerBatch)) statement.run(...getValues(table, row));
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}
