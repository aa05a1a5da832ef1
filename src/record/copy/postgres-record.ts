import { randomBytes } from "node:crypto";
import { BugError } from "../../model/errors.ts";
import { partSize } from "../postgres/blobs.ts";
import { runWork } from "../postgres/run-work.ts";
import { type Connection, connect } from "../postgres/connection.ts";
import { rollBackAfter } from "../postgres/engine.ts";
import { toHostError, getPublicName } from "../postgres/errors.ts";
import { migrate } from "../postgres/migrations/migrate.ts";
import { requireRecord } from "../postgres/require-record.ts";
import { commit, lockForWriting } from "../postgres/write-lock.ts";
import { all, first, type Row, type Work, write } from "../query.ts";
import { createNotEmptyError } from "./errors.ts";
import {
  splitPieces,
  getKey,
  measureLongColumns,
  maxPageBytes,
  maxPageRows,
  type WritableRecord,
  type ReadableRecord,
  getValues,
} from "./record-copy.ts";
import { buildInsertStatement, buildPageStatement, type Table, tables } from "./tables.ts";

/** Longer than any pause between two statements of a copy, so that a machine that disappears does not keep the lock. */
const idleTransactionMs = 60_000;
/** Bytes sent but not yet acknowledged. */
const maxInFlight = 4 * 1024 * 1024;
/** Rough size of a row without its long columns. */
const baseRowBytes = 500;
/** Rows per statement. Smaller batches use a half, a quarter and so on, so that there are few different statements. */
const rowsPerInsert = 128;

const selectBlob = `select size, upload_id from blobs where sha256 = ?`;
const selectPart = `select bytes from blob_parts where upload_id = ? and part = ?`;
const insertPart = `insert into blob_parts (upload_id, part, stored_at, bytes) values (?, ?, ?, ?)`;
const insertBlob = `insert into blobs (sha256, size, upload_id, stored_at) values (?, ?, ?, ?)`;

/** Reads a consistent snapshot while others keep writing. */
export async function withSnapshot<T>(
  url: string,
  work: (record: ReadableRecord) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  await requireRecord(url);
  return withConnection(url, async (connection) => {
    // Closing the connection also interrupts a long statement.
    const closeConnection = (): void => connection.end();
    signal?.addEventListener("abort", closeConnection);
    try {
      signal?.throwIfAborted();
      await connection.exec("begin isolation level repeatable read read only");
      return await work(createReadableRecord(connection, url));
    } catch (error) {
      throw signal?.aborted ? signal.reason : error;
    } finally {
      signal?.removeEventListener("abort", closeConnection);
    }
  });
}

/** Fills an empty database in one transaction while nobody else can write. Refuses a database that is not empty. */
export async function fillPostgres<T>(
  url: string,
  now: Date,
  work: (record: WritableRecord) => Promise<T>,
): Promise<T> {
  await migrate(url);
  return withConnection(url, async (connection) => {
    try {
      await lockForWriting(connection);
      await requireEmpty(connection, url);
      // Every new record contains one row. Remove it, because the copy contains it too.
      await connection.exec("delete from demands");
      const result = await work(createWritableRecord(connection, url, now));
      await connection.flush();
      for (const { name, sequenceColumn } of tables)
        if (sequenceColumn !== undefined) await connection.exec(buildSetSequence(name, sequenceColumn));
      // Without statistics the planner would choose bad plans until the first autovacuum.
      await connection.exec(`analyze ${tables.map(({ name }) => name).join(", ")}`);
      await commit(connection);
      return result;
    } catch (error) {
      throw await rollBackAfter(connection, error);
    }
  });
}

async function withConnection<T>(url: string, work: (connection: Connection) => Promise<T>): Promise<T> {
  let connection: Connection | null = null;
  try {
    connection = await connect(url, { idleInTransactionMs: idleTransactionMs });
    return await work(connection);
  } catch (error) {
    throw toHostError(error, url);
  } finally {
    connection?.end();
  }
}

async function requireEmpty(connection: Connection, url: string): Promise<void> {
  const sources = tables.map(({ name }) => (name === "demands" ? "demands where demand_id <> 1" : name));
  for (const table of [...sources, "blobs", "blob_parts"]) {
    const [row] = await connection.exec(`select 1 as there from ${table} limit 1`);
    if (row !== undefined) throw createNotEmptyError(getPublicName(url), table.split(" ", 1)[0]!);
  }
}

/** The sequence continues after the highest number. Without rows it starts at the first. */
function buildSetSequence(table: string, column: string): string {
  return `select setval(pg_get_serial_sequence('${table}', '${column}'), coalesce(max(${column}), 1), max(${column}) is not null)
    from ${table}`;
}

function createReadableRecord(connection: Connection, url: string): ReadableRecord {
  return {
    name: getPublicName(url),
    runWork: (work) => runWork(connection, work),
    readPage: (table, after) =>
      connection.query(
        all(
          buildSizedPageStatement(table, after !== null),
          ...(after === null ? [] : getKey(table, after)),
          maxPageRows,
        ),
      ),
    async openContent(sha256) {
      const [blob] = await connection.query(first(selectBlob, sha256));
      return blob === undefined ? null : readParts(connection, String(blob["upload_id"]), Number(blob["size"]));
    },
  };
}

/** octet_length gets the size without reading the value. The first row is always included. */
function buildSizedPageStatement(table: Table, hasCursor: boolean): string {
  const page = buildPageStatement(table, hasCursor);
  if (table.longColumns.length === 0) return page;
  const columns = table.columns.join(", ");
  const size = table.longColumns.map((column) => `coalesce(octet_length(${column}), 0)`).join(" + ");
  const key = table.key.join(", ");
  return `select ${columns} from (
    select ${columns}, coalesce(sum(${size}) over (order by ${key} rows between unbounded preceding and 1 preceding), 0) as before
    from (${page}) page) sized
    where before < ${maxPageBytes} order by ${key}`;
}

async function* readParts(connection: Connection, upload_id: string, size: number): AsyncGenerator<Uint8Array> {
  for (let [part, read] = [0, 0]; read < size; part += 1) {
    const [row] = await connection.query(first(selectPart, upload_id, part));
    if (row === undefined) return;
    if (!(row["bytes"] instanceof Uint8Array)) throw new BugError("a part of a file is not bytes");
    read += row["bytes"].length;
    yield row["bytes"];
  }
}

function createWritableRecord(connection: Connection, url: string, now: Date): WritableRecord {
  let inFlight = 0;
  return {
    ...createReadableRecord(connection, url),
    flush,
    async insert(table, rows) {
      await runWork(connection, insertRows(table, rows));
      for (const row of rows) inFlight += baseRowBytes + measureLongColumns(table, row);
      if (inFlight > maxInFlight) await flush();
    },
    async addContent(sha256, pieces) {
      const upload_id = randomBytes(16).toString("hex");
      let [part, size] = [0, 0];
      for await (const bytes of splitPieces(pieces, partSize)) {
        await connection.query(write(insertPart, upload_id, part, now.getTime(), bytes));
        part += 1;
        size += bytes.length;
        inFlight += bytes.length;
        if (inFlight > maxInFlight) await flush();
      }
      await connection.query(write(insertBlob, sha256, size, upload_id, now.getTime()));
    },
  };

  async function flush(): Promise<void> {
    inFlight = 0;
    try {
      await connection.flush();
    } catch (error) {
      throw toHostError(error, url);
    }
  }
}

function* insertRows(table: Table, rows: readonly Row[]): Work<void> {
  for (let from = 0, count = rowsPerInsert; from < rows.length;) {
    while (count > rows.length - from) count /= 2;
    const values = rows.slice(from, from + count).flatMap((row) => getValues(table, row));
    yield write(buildInsertStatement(table, count), ...values);
    from += count;
  }
}
