import { randomBytes } from "node:crypto";
import { BugError } from "../../model/errors.ts";
import { partSize } from "../postgres/blobs.ts";
import { carryOut } from "../postgres/carry-out.ts";
import { type Client, connect } from "../postgres/client.ts";
import { rolledBack } from "../postgres/engine.ts";
import { hostFault, publicName } from "../postgres/faults.ts";
import { migrate } from "../postgres/migrations/migrate.ts";
import { requireRecord } from "../postgres/existing.ts";
import { commit, lockForWriting } from "../postgres/write-lock.ts";
import { all, first, type Row, type Work, write } from "../query.ts";
import { occupied } from "./faults.ts";
import {
  inPieces,
  keyOf,
  longBytes,
  mostBytes,
  mostRows,
  type NewRecord,
  type StillRecord,
  valuesOf,
} from "./sides.ts";
import { insertOf, pageOf, type Table, tables } from "./tables.ts";

/** Longer than any pause between two statements of a copy, so that a machine that disappears does not keep the lock. */
const longestPauseMs = 60_000;
/** Bytes sent but not yet acknowledged. */
const mostUnderWay = 4 * 1024 * 1024;
/** Rough size of a row without its long columns. */
const shortBytes = 500;
/** Rows per statement. Smaller batches use a half, a quarter and so on, so that there are few different statements. */
const rowsAtOnce = 128;

const selectBlob = `select size, upload_id from blobs where sha256 = ?`;
const selectPart = `select bytes from blob_parts where upload_id = ? and part = ?`;
const insertPart = `insert into blob_parts (upload_id, part, stored_at, bytes) values (?, ?, ?, ?)`;
const insertBlob = `insert into blobs (sha256, size, upload_id, stored_at) values (?, ?, ?, ?)`;

/** Reads a consistent snapshot while others keep writing. */
export async function snapshotOf<T>(
  url: string,
  work: (record: StillRecord) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  await requireRecord(url);
  return onItsOwn(url, async (client) => {
    // Closing the connection also interrupts a long statement.
    const leave = (): void => client.end();
    signal?.addEventListener("abort", leave);
    try {
      signal?.throwIfAborted();
      await client.exec("begin isolation level repeatable read read only");
      return await work(postgresRecord(client, url));
    } catch (fault) {
      throw signal?.aborted ? signal.reason : fault;
    } finally {
      signal?.removeEventListener("abort", leave);
    }
  });
}

/** Fills an empty database in one transaction while nobody else can write. Refuses a database that is not empty. */
export async function intoPostgres<T>(url: string, now: Date, work: (record: NewRecord) => Promise<T>): Promise<T> {
  await migrate(url);
  return onItsOwn(url, async (client) => {
    try {
      await lockForWriting(client);
      await refuseIfUsed(client, url);
      // Every new record contains one row; the copy brings its own.
      await client.exec("delete from demands");
      const done = await work(newPostgresRecord(client, url, now));
      await client.settled();
      for (const { name, counted } of tables) if (counted !== undefined) await client.exec(setCounter(name, counted));
      // Autovacuum would do it eventually; until then the planner would guess badly.
      await client.exec(`analyze ${tables.map(({ name }) => name).join(", ")}`);
      await commit(client);
      return done;
    } catch (fault) {
      throw await rolledBack(client, fault);
    }
  });
}

async function onItsOwn<T>(url: string, work: (client: Client) => Promise<T>): Promise<T> {
  let client: Client | null = null;
  try {
    client = await connect(url, { idleInTransactionMs: longestPauseMs });
    return await work(client);
  } catch (fault) {
    throw hostFault(fault, url);
  } finally {
    client?.end();
  }
}

async function refuseIfUsed(client: Client, url: string): Promise<void> {
  const used = tables.map(({ name }) => (name === "demands" ? "demands where demand_id <> 1" : name));
  for (const table of [...used, "blobs", "blob_parts"]) {
    const [row] = await client.exec(`select 1 as there from ${table} limit 1`);
    if (row !== undefined) throw occupied(publicName(url), table.split(" ", 1)[0]!);
  }
}

/** Without rows, the next number is the first. */
function setCounter(table: string, column: string): string {
  return `select setval(pg_get_serial_sequence('${table}', '${column}'), coalesce(max(${column}), 1), max(${column}) is not null)
    from ${table}`;
}

function postgresRecord(client: Client, url: string): StillRecord {
  return {
    name: publicName(url),
    carryOut: (work) => carryOut(client, work),
    page: (table, after) =>
      client.query(all(sizedPageOf(table, after !== null), ...(after === null ? [] : keyOf(table, after)), mostRows)),
    async content(sha256) {
      const [blob] = await client.query(first(selectBlob, sha256));
      return blob === undefined ? null : partsOf(client, String(blob["upload_id"]), Number(blob["size"]));
    },
  };
}

/** octet_length gets the size without reading the value. The first row is always included. */
function sizedPageOf(table: Table, follows: boolean): string {
  const page = pageOf(table, follows);
  if (table.long.length === 0) return page;
  const columns = table.columns.join(", ");
  const size = table.long.map((column) => `coalesce(octet_length(${column}), 0)`).join(" + ");
  const key = table.key.join(", ");
  return `select ${columns} from (
    select ${columns}, coalesce(sum(${size}) over (order by ${key} rows between unbounded preceding and 1 preceding), 0) as before
    from (${page}) page) sized
    where before < ${mostBytes} order by ${key}`;
}

async function* partsOf(client: Client, upload_id: string, size: number): AsyncGenerator<Uint8Array> {
  for (let [part, read] = [0, 0]; read < size; part += 1) {
    const [row] = await client.query(first(selectPart, upload_id, part));
    if (row === undefined) return;
    if (!(row["bytes"] instanceof Uint8Array)) throw new BugError("a part of a file is not bytes");
    read += row["bytes"].length;
    yield row["bytes"];
  }
}

function newPostgresRecord(client: Client, url: string, now: Date): NewRecord {
  let underWay = 0;
  return {
    ...postgresRecord(client, url),
    settled,
    async insert(table, rows) {
      await carryOut(client, insertRows(table, rows));
      for (const row of rows) underWay += shortBytes + longBytes(table, row);
      if (underWay > mostUnderWay) await settled();
    },
    async addContent(sha256, pieces) {
      const upload_id = randomBytes(16).toString("hex");
      let [part, size] = [0, 0];
      for await (const bytes of inPieces(pieces, partSize)) {
        await client.query(write(insertPart, upload_id, part, now.getTime(), bytes));
        part += 1;
        size += bytes.length;
        underWay += bytes.length;
        if (underWay > mostUnderWay) await settled();
      }
      await client.query(write(insertBlob, sha256, size, upload_id, now.getTime()));
    },
  };

  async function settled(): Promise<void> {
    underWay = 0;
    try {
      await client.settled();
    } catch (fault) {
      throw hostFault(fault, url);
    }
  }
}

function* insertRows(table: Table, rows: readonly Row[]): Work<void> {
  for (let from = 0, count = rowsAtOnce; from < rows.length;) {
    while (count > rows.length - from) count /= 2;
    const values = rows.slice(from, from + count).flatMap((row) => valuesOf(table, row));
    yield write(insertOf(table, count), ...values);
    from += count;
  }
}
