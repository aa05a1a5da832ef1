import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { drive } from "../../../test/fixtures/dispatch/drive.ts";
import { createManualClock } from "../../../test/fixtures/dispatch/host.ts";
import { executionStarted, recordRuns, sampleId } from "../../../test/fixtures/record/sample.ts";
import { type FreshDatabase, freshDatabase } from "../../../test/postgres/fresh-database.ts";
import { createMac } from "../../model/hmac.ts";
import { pruneAudit } from "../audit/prune.ts";
import { genesis, sealBatch, sealRow, type AuditBatch, type AuditRow } from "../audit/seal.ts";
import type { Row, SqlValue } from "../query.ts";
import { all, write } from "../query.ts";
import type { RecordStore } from "../record-store.ts";
import { exportPostgres, verifyPostgres } from "./audit.ts";
import { type Connection, connect } from "./connection.ts";
import { openPostgresStore } from "./open.ts";

const secret = Buffer.alloc(32, 9);
const { now, advance } = createManualClock();
let database: FreshDatabase;
let store: RecordStore;
let client: Connection;
const verify = (head?: string) => verifyPostgres({ url: database.url, secret }, head);

/** Eight rows in eight batches. */
beforeEach(async () => {
  database = await freshDatabase();
  store = await openPostgresStore({ url: database.url, secret, now });
  client = await connect(database.url);
  await recordRuns(store, 4);
});
afterEach(async () => {
  client.end();
  await store.close();
  await database.drop();
});

it("accepts an unchanged trail and returns its length", async () => {
  const result = await verify();
  expect(result).toEqual({ ok: true, rows: 8, batches: 8, head: result.head, pruned: null });
  await recordRuns(store, 1);
  expect(await verify(result.head)).toMatchObject({ ok: true, rows: 10 });
});

describe("names the first bad row when", () => {
  it("any column of a row is changed", async () => {
    for (const column of ["batch_no", "kind", "execution_id", "run_id", "attempt", "at", "body", "mac"]) {
      await flip("audit_rows", column, "no = 5");
      const result = await verify();
      expect([column, result]).toMatchObject([column, { ok: false, rows: 4, first_bad: { batch_no: 5, row_no: 5 } }]);
      await flip("audit_rows", column, "no = 5", -1);
    }
    expect(await verify()).toMatchObject({ ok: true });
  });

  it("a row is deleted, renumbered or added", async () => {
    await client.exec("begin; delete from audit_rows where no = 3; commit");
    expect(await verify()).toMatchObject({ ok: false, first_bad: { row_no: 3, what: "the row is missing" } });
    await client.exec("update audit_rows set no = 3 where no = 4");
    expect(await verify()).toMatchObject({ ok: false, first_bad: { row_no: 3 } });
    await client.exec(
      "insert into audit_rows select -1, 1, kind, execution_id, run_id, attempt, at, body, mac from audit_rows where no = 1",
    );
    expect(await verify()).toMatchObject({ ok: false, first_bad: { row_no: -1, what: "the row was inserted" } });
  });
});

describe("fails when", () => {
  it("any column of a batch is changed", async () => {
    for (const column of ["first_no", "count", "at", "mac"]) {
      await flip("audit_batches", column, "batch_no = 5");
      expect([column, await verify()]).toMatchObject([column, { ok: false, first_bad: { batch_no: 5 } }]);
      await flip("audit_batches", column, "batch_no = 5", -1);
    }
    expect(await verify()).toMatchObject({ ok: true });
    await flip("audit_batches", "batch_no", "batch_no = 5", 100);
    expect(await verify()).toMatchObject({ ok: false, first_bad: { batch_no: 5 } });
  });

  it("any column of an anchor is changed", async () => {
    advance(1000);
    await pruneAudit(store, now());
    expect(await verify()).toMatchObject({ ok: true, pruned: { rows: 8 } });
    const what = "the anchor of pruned rows was changed";
    for (const column of ["batch_no", "last_no", "pruned_before", "at", "mac", "seal"]) {
      await flip("audit_anchors", column, "true");
      expect([column, await verify()]).toMatchObject([column, { ok: false, first_bad: { what } }]);
      await flip("audit_anchors", column, "true", -1);
    }
    expect(await verify()).toMatchObject({ ok: true });
  });

  it("a batch is deleted with its rows", async () => {
    await client.exec("delete from audit_batches where batch_no = 3; delete from audit_rows where no = 3");
    expect(await verify()).toMatchObject({ ok: false, first_bad: { batch_no: 3, what: "the batch is missing" } });
  });

  it("the tail is truncated, if the head was recorded", async () => {
    const { head } = await verify();
    await client.exec("delete from audit_batches where batch_no > 6; delete from audit_rows where no > 6");
    expect(await verify()).toMatchObject({ ok: true, rows: 6 });
    expect(await verify(head)).toMatchObject({
      ok: false,
      first_bad: { row_no: 7, what: "the given head records 8 rows, but the chain has only 6: its end was cut off" },
    });
    expect(await verify(head.split(":")[1])).toMatchObject({ ok: false });
  });

  it("the chain is rewritten with another key, or with the right one if its head was recorded", async () => {
    const { head } = await verify();
    await rewrite(Buffer.alloc(32, 7));
    expect(await verify()).toMatchObject({ ok: false, rows: 0, first_bad: { batch_no: 1, row_no: 1 } });
    await rewrite(secret);
    expect(await verify()).toMatchObject({ ok: true });
    expect(await verify(head)).toMatchObject({
      ok: false,
      first_bad: { what: expect.stringContaining("the chain was rewritten") },
    });
  });

  it("the secret is wrong", async () => {
    const other = { url: database.url, secret: Buffer.alloc(32, 1) };
    expect(await verifyPostgres(other, undefined)).toMatchObject({ ok: false, first_bad: { row_no: 1 } });
  });
});

it("exports executions in order of their start, with the refused writes", async () => {
  const driver = drive(store, now);
  const runner = await driver.register("late");
  const run_id = await driver.submit();
  await driver.claim(runner);
  await driver.append(runner, run_id, 7, 1, executionStarted(sampleId()));
  const lines: string[] = [];
  expect(await exportPostgres(database.url, {}, (line) => void lines.push(line))).toEqual({ executions: 4 });
  const types = lines.map((line) => JSON.parse(line).eventType);
  expect(types).toEqual([...Array.from({ length: 4 }, () => "command_execution"), "refused_write"]);
});

it("creates no record where there is none", async () => {
  const empty = await freshDatabase();
  try {
    await expect(verifyPostgres({ url: empty.url, secret }, undefined)).rejects.toMatchObject({
      code: "DROVER-STA-006",
      message: expect.stringMatching(/^There is no record in postgres:\/\/127/),
    });
    await client.exec("update schema_version set version = 99");
    await expect(verify()).rejects.toMatchObject({ code: "DROVER-STA-005" });
  } finally {
    await empty.drop();
  }
});

/** Calling it again with -1 undoes the change. */
async function flip(table: string, column: string, where: string, by = 1): Promise<void> {
  const [row] = await client.exec(`select ${column} as value from ${table} where ${where}`);
  await client.query(all(`update ${table} set ${column} = ? where ${where} returning 1 as done`, flipValue(row, by)));
}

function flipValue(row: Row | undefined, by: number): SqlValue {
  const value = row?.["value"] ?? null;
  if (typeof value === "number") return value + by;
  const bytes = Buffer.from(value as string | Uint8Array); // These tables have no other types.
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  return typeof value === "string" ? bytes.toString() : bytes;
}

/** Changes the command of all rows and seals them again from the first on. */
async function rewrite(key: Uint8Array): Promise<void> {
  const mac = createMac(key);
  let before: Uint8Array = genesis;
  // The columns of the schema.
  const batches = (await client.exec("select * from audit_batches order by batch_no")) as unknown as AuditBatch[];
  for (const batch of batches) {
    const rows = (await client.query(
      all("select * from audit_rows where batch_no = ? order by no", batch.batch_no),
    )) as unknown as AuditRow[];
    const macs: Uint8Array[] = [];
    for (const row of rows) {
      const changed = { ...row, body: row.body.replace("hello", "byebye") };
      const seal = sealRow(mac, changed);
      await client.query(write("update audit_rows set body = ?, mac = ? where no = ?", changed.body, seal, row.no));
      macs.push(seal);
    }
    before = sealBatch(mac, before, batch, macs);
    await client.query(write("update audit_batches set mac = ? where batch_no = ?", before, batch.batch_no));
  }
  await client.flush();
}
