import { rmSync, writeFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { recordRuns } from "../../../test/fixtures/record/sample.ts";
import { scratchStores } from "../../../test/fixtures/record/scratch.ts";
import { openDatabase, type Database } from "../sqlite/driver.ts";
import { auditHeadFile, auditKeyFile, databaseFile } from "../../model/state-layout.ts";
import { readHead } from "./head.ts";
import { createMac } from "../../model/hmac.ts";
import { readKey } from "./key.ts";
import { genesis, sealBatch, sealRow, type AuditBatch, type AuditRow } from "./seal.ts";
import { verifyAudit } from "./verify.ts";

const scratch = scratchStores();

it("accepts a new trail and a used one, and returns its length", async () => {
  const directory = scratch.newDirectory();
  const store = await scratch.open(directory);
  expect(await verifyAudit({ directory })).toEqual({
    ok: true,
    rows: 0,
    batches: 0,
    head: `0:${"0".repeat(64)}`,
    pruned: null,
  });
  await recordRuns(store, 3);
  const result = await verifyAudit({ directory });
  expect(result).toMatchObject({ ok: true, rows: 6, batches: 6 });
  expect(result.head).toBe(`6:${readHead(auditHeadFile(directory))?.mac}`);
});

it("accepts batches of many rows", async () => {
  const { directory } = await createTrail({ runs: 40, concurrently: true });
  const result = await verifyAudit({ directory });
  expect(result).toMatchObject({ ok: true, rows: 80 });
  expect(result.batches).toBeLessThan(80);
});

describe("names the first bad row when", () => {
  const columns = ["batch_no", "kind", "execution_id", "run_id", "attempt", "at", "body", "mac"];
  for (const column of columns) {
    it(`${column} of a row is changed`, async () => {
      const { directory } = await createTrail({ runs: 4 }, (db) => flip(db, "audit_rows", column, "no = 5"));
      expect(await verifyAudit({ directory })).toMatchObject({
        ok: false,
        rows: 4,
        first_bad: { batch_no: 5, row_no: 5 },
      });
    });
  }

  it("a text value is turned into a blob, or into bytes that are not valid text", async () => {
    for (const assignment of ["body = cast(body as blob)", "body = cast(x'ff' as text)"]) {
      const { directory } = await createTrail({ runs: 4 }, (db) =>
        db.exec(`update audit_rows set ${assignment} where no = 3`),
      );
      expect(await verifyAudit({ directory })).toMatchObject({ ok: false, first_bad: { row_no: 3 } });
    }
  });

  it.each(["audit_rows_by_execution", "audit_rows_by_run"])("%s leaves a row out", async (name) => {
    const { directory } = await createTrail({ runs: 4 }, (db) => rebuildIndex(db, name, "and no <> 5"));
    expect(await verifyAudit({ directory })).toMatchObject({
      ok: false,
      rows: 4,
      first_bad: { row_no: 5, what: "the row is missing from an index" },
    });
  });

  it("one row in the middle of a batch is changed", async () => {
    const { directory } = await createTrail({ runs: 10, concurrently: true }, (db) =>
      flip(db, "audit_rows", "body", "no = 7"),
    );
    expect(await verifyAudit({ directory })).toMatchObject({ ok: false, first_bad: { row_no: 7 } });
  });

  it("a row is deleted, renumbered or added", async () => {
    const deleted = await createTrail({ runs: 4 }, (db) => db.exec("delete from audit_rows where no = 3"));
    expect(await verifyAudit(deleted)).toMatchObject({
      ok: false,
      first_bad: { row_no: 3, what: "the row is missing" },
    });
    const moved = await createTrail({ runs: 4 }, (db) => db.exec("update audit_rows set no = 90 where no = 3"));
    expect(await verifyAudit(moved)).toMatchObject({ ok: false, first_bad: { row_no: 3 } });
    const copy = "select 9, 8, kind, execution_id, run_id, attempt, at, body, mac from audit_rows where no = 8";
    const added = await createTrail({ runs: 4 }, (db) => db.exec(`insert into audit_rows ${copy}`));
    expect(await verifyAudit(added)).toMatchObject({ ok: false, first_bad: { row_no: 9 } });
  });
});

describe("fails when", () => {
  for (const column of ["batch_no", "first_no", "count", "at", "mac"]) {
    it(`${column} of a batch is changed`, async () => {
      const { directory } = await createTrail({ runs: 4 }, (db) => {
        flip(db, "audit_batches", column, "batch_no = 5", column === "batch_no" ? 100 : 1);
      });
      expect(await verifyAudit({ directory })).toMatchObject({ ok: false, first_bad: { batch_no: 5 } });
    });
  }

  it("a batch is deleted, with its rows or without", async () => {
    const whole = await createTrail({ runs: 4 }, (db) =>
      db.exec("delete from audit_batches where batch_no = 3; delete from audit_rows where no = 3"),
    );
    expect(await verifyAudit(whole)).toMatchObject({
      ok: false,
      first_bad: { batch_no: 3, row_no: 3, what: "the batch is missing" },
    });
    const half = await createTrail({ runs: 4 }, (db) => db.exec("delete from audit_batches where batch_no = 3"));
    expect(await verifyAudit(half)).toMatchObject({ ok: false, first_bad: { batch_no: 3 } });
  });

  it("the first batches are deleted without an anchor", async () => {
    const { directory } = await createTrail({ runs: 4 }, (db) => {
      db.exec("delete from audit_batches where batch_no <= 2; delete from audit_rows where no <= 2");
    });
    expect(await verifyAudit({ directory })).toMatchObject({ ok: false, rows: 0, first_bad: { batch_no: 1 } });
  });

  it("the tail is truncated: audit.head shows it, and so does a head recorded earlier", async () => {
    const { directory } = await createTrail({ runs: 4 });
    const { head } = await verifyAudit({ directory });
    editDatabase(directory, truncateTail);
    expect(await verifyAudit({ directory })).toMatchObject({
      ok: false,
      rows: 6,
      first_bad: { batch_no: 6, row_no: 7 },
    });
    rmSync(auditHeadFile(directory));
    expect(await verifyAudit({ directory })).toMatchObject({
      ok: false,
      first_bad: { what: expect.stringContaining("audit.head") },
    });
    writeFileSync(auditHeadFile(directory), `${"0".repeat(16)}:${"0".repeat(64)}\n`);
    expect(await verifyAudit({ directory })).toMatchObject({ ok: true });
    expect(await verifyAudit({ directory, head })).toMatchObject({ ok: false, first_bad: { row_no: 7 } });
    expect(await verifyAudit({ directory, head: head.split(":")[1] ?? "" })).toMatchObject({ ok: false });
  });

  it("the tail was truncated and other rows were written in its place", async () => {
    const { directory } = await createTrail({ runs: 4 });
    const { head } = await verifyAudit({ directory });
    editDatabase(directory, truncateTail);
    await recordRuns(await scratch.open(directory), 2);
    expect(await verifyAudit({ directory, head })).toMatchObject({
      ok: false,
      first_bad: { row_no: 8, what: expect.stringContaining("rewritten") },
    });
  });

  it("the chain is rewritten with another key", async () => {
    const { directory } = await createTrail({ runs: 4 }, (db) => rewrite(db, new Uint8Array(32).fill(7)));
    expect(await verifyAudit({ directory })).toMatchObject({
      ok: false,
      rows: 0,
      first_bad: { batch_no: 1, row_no: 1 },
    });
  });

  it("the chain is rewritten with the right key, if its head was recorded", async () => {
    const { directory } = await createTrail({ runs: 4 });
    const { head } = await verifyAudit({ directory });
    editDatabase(directory, (db) => rewrite(db, readKey(directory) ?? new Uint8Array()));
    expect(await verifyAudit({ directory })).toMatchObject({
      ok: false,
      first_bad: { what: expect.stringContaining("audit.head") },
    });
    writeFileSync(auditHeadFile(directory), `${"0".repeat(16)}:${"0".repeat(64)}\n`);
    expect(await verifyAudit({ directory })).toMatchObject({ ok: true });
    expect(await verifyAudit({ directory, head })).toMatchObject({ ok: false, first_bad: { row_no: 8 } });
  });

  it("the key is missing", async () => {
    const { directory } = await createTrail({ runs: 1 });
    rmSync(auditKeyFile(directory));
    await expect(verifyAudit({ directory })).rejects.toMatchObject({ code: "DROVER-AUD-001" });
  });
});

it("accepts a database that is ahead of audit.head, and a head from the middle of the chain", async () => {
  const directory = scratch.newDirectory();
  const store = await scratch.open(directory);
  await recordRuns(store, 1);
  const { head } = await verifyAudit({ directory });
  await recordRuns(store, 2);
  writeFileSync(auditHeadFile(directory), `${head.padStart(81, "0")}\n`);
  expect(await verifyAudit({ directory, head })).toMatchObject({ ok: true, rows: 6 });
  expect(await verifyAudit({ directory, head: head.split(":")[1] ?? "" })).toMatchObject({ ok: true, rows: 6 });
  await expect(verifyAudit({ directory, head: "nonsense" })).rejects.toMatchObject({ code: "DROVER-USE-001" });
});

/** Creates a closed trail of start and end rows. `tamper` changes it with plain SQL. */
async function createTrail(
  { runs, concurrently = false }: { runs: number; concurrently?: boolean },
  tamper?: (db: Database) => void,
) {
  const directory = scratch.newDirectory();
  const store = await scratch.open(directory);
  await recordRuns(store, runs, concurrently);
  await store.close();
  if (tamper !== undefined) editDatabase(directory, tamper);
  return { directory };
}

function editDatabase(directory: string, tamper: (db: Database) => void): void {
  const db = openDatabase(databaseFile(directory), {});
  try {
    tamper(db);
  } finally {
    db.close();
  }
}

function truncateTail(db: Database): void {
  db.exec("delete from audit_batches where batch_no > 6; delete from audit_rows where no > 6");
}

function flip(db: Database, table: string, column: string, where: string, by = 1): void {
  const value = db.prepare(`select ${column} as value from ${table} where ${where}`).get()?.["value"] ?? null;
  const flipped =
    typeof value === "number"
      ? value + by
      : typeof value === "string"
        ? flipFirst(Buffer.from(value)).toString()
        : flipFirst(Buffer.from(value as Uint8Array));
  db.prepare(`update ${table} set ${column} = ? where ${where}`).run(flipped);
}

function flipFirst(bytes: Buffer): Buffer {
  bytes[0] = (bytes[0] ?? 0) ^ 1;
  return bytes;
}

/** Changes the command of all rows and seals them again from the first on. */
function rewrite(db: Database, key: Uint8Array): void {
  const mac = createMac(key);
  let before: Uint8Array = genesis;
  // The selected columns match the types.
  const batches = db
    .prepare("select batch_no, first_no, count, at from audit_batches order by batch_no")
    .all() as unknown as AuditBatch[];
  for (const batch of batches) {
    const rows = db
      .prepare("select * from audit_rows where batch_no = ? order by no")
      .all(batch.batch_no) as unknown as AuditRow[];
    const macs = rows.map((row) => {
      const changed = { ...row, body: row.body.replace("hello", "byebye") };
      const seal = sealRow(mac, changed);
      db.prepare("update audit_rows set body = ?, mac = ? where no = ?").run(changed.body, seal, row.no);
      return seal;
    });
    before = sealBatch(mac, before, batch, macs);
    db.prepare("update audit_batches set mac = ? where batch_no = ?").run(before, batch.batch_no);
  }
}

/** Builds the index with an additional condition, and then hides that condition from the schema. */
function rebuildIndex(db: Database, name: string, condition: string): void {
  // The driver has enableDefensive, but the type Database does not declare it.
  (db as Database & { enableDefensive(active: boolean): void }).enableDefensive(false);
  const [row] = db.prepare("select sql from sqlite_master where name = ?").all(name) as { sql: string }[];
  db.exec(`drop index ${name}; ${row!.sql} ${condition}; pragma writable_schema = on`);
  db.prepare("update sqlite_master set sql = ? where name = ?").run(row!.sql, name);
  db.exec("pragma writable_schema = reset");
}
