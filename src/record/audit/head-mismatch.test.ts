import { mkdirSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { recordRuns } from "../../../test/fixtures/record/sample.ts";
import { scratchStores } from "../../../test/fixtures/record/scratch.ts";
import { backupStore } from "../backup.ts";
import { restoreStore } from "../restore.ts";
import { openDatabase } from "../sqlite/driver.ts";
import { auditHeadFile, databaseFile } from "../../model/state-layout.ts";
import { readHead } from "./head.ts";
import { pruneAudit } from "./prune.ts";
import { verifyAudit } from "./verify.ts";

const scratch = scratchStores();

describe("continues the chain, and reports the mismatch from then on, when", () => {
  it("the tail was truncated", async () => {
    const directory = await createTrail(3);
    truncateTail(directory);
    const truncated = await verifyAudit({ directory });
    expect(truncated).toMatchObject({ ok: false, first_bad: { row_no: 5 } });
    await write(directory, 1);
    await expectRecorded(directory, 5, "shorter than its head when row 5 was written: the head recorded 6 rows");
    await write(directory, 4);
    await expectRecorded(directory, 5, "shorter than its head");
    expect(readMismatches(directory)).toEqual([
      { head: { count: 6, mac: expect.any(String) }, chain: { count: 4, mac: truncated.head.slice(2) } },
    ]);
  });

  it("audit.head was removed, or emptied", async () => {
    for (const damage of [rmSync, (file: string) => writeFileSync(file, "")]) {
      const directory = await createTrail(3);
      damage(auditHeadFile(directory));
      await write(directory, 1);
      await write(directory, 1);
      await expectRecorded(directory, 7, "audit.head was missing when row 7 was written");
      expect(readMismatches(directory)).toMatchObject([{ head: "missing", chain: { count: 6 } }]);
    }
  });

  it("the database was removed", async () => {
    const directory = await createTrail(3);
    for (const end of ["", "-wal", "-shm"]) rmSync(join(directory, `drover.db${end}`), { force: true });
    await write(directory, 3);
    await expectRecorded(directory, 1, "shorter than its head when row 1 was written");
  });

  it("an older copy of the database was continued before the head came back", async () => {
    const directory = await createTrail(3);
    const head = readFileSync(auditHeadFile(directory));
    truncateTail(directory);
    writeFileSync(auditHeadFile(directory), `${"0".repeat(16)}:${"0".repeat(64)}\n`);
    for (const runs of [1, 2]) {
      await write(directory, runs);
      writeFileSync(auditHeadFile(directory), head);
    }
    await write(directory, 1);
    await expectRecorded(directory, 7, "did not match its head when row 7 was written");
  });

  it("the tail was truncated under a long-lived process", async () => {
    const directory = scratch.newDirectory();
    const store = await scratch.open(directory);
    await recordRuns(store, 3);
    truncateTail(directory);
    await recordRuns(store, 3);
    await expectRecorded(directory, 5, "shorter than its head");
    expect(readMismatches(directory)).toHaveLength(1);
  });

  it("retention has removed the rows that record the mismatch", async () => {
    const directory = await createTrail(3);
    truncateTail(directory);
    const store = await scratch.open(directory, { now: () => new Date("2026-01-01") });
    await recordRuns(store, 1);
    for (const day of ["2026-02-01", "2026-03-01"]) {
      const later = await scratch.open(directory, { now: () => new Date(day) });
      await pruneAudit(later, new Date("2100-01-01"));
      expect(await verifyAudit({ directory })).toMatchObject({
        ok: false,
        first_bad: { what: expect.stringContaining("shorter than its head when row 5 was written") },
      });
    }
  });

  it("retention is the first to write", async () => {
    const directory = await createTrail(3);
    truncateTail(directory);
    const store = await scratch.open(directory);
    await pruneAudit(store, new Date("2100-01-01"));
    await recordRuns(store, 2);
    await expectRecorded(directory, 5, "shorter than its head");
  });
});

it("reports new damage before old damage that the chain has recorded", async () => {
  const directory = await createTrail(3);
  truncateTail(directory);
  await write(directory, 2);
  editDatabase(directory, "update audit_rows set body = '{}' where no = 8");
  expect(await verifyAudit({ directory })).toMatchObject({
    ok: false,
    first_bad: { row_no: 8, what: expect.stringContaining("changed") },
  });
});

it("does not keep a backup from being restored, and the restored record reports the mismatch too", async () => {
  const directory = await createTrail(3);
  truncateTail(directory);
  await write(directory, 1);
  const file = join(directory, "copy");
  await backupStore({ directory, file }, new Date());
  const restored = scratch.newDirectory();
  const { audit } = await restoreStore({ now: new Date(), directory: restored, file });
  expect(audit).toMatchObject({ ok: false, first_bad: { row_no: 5, wasReported: true } });
  await write(restored, 1);
  await expectRecorded(restored, 5, "shorter than its head");
});

describe("reports nothing when", () => {
  it("the database is ahead of audit.head, even if retention removed the head's rows", async () => {
    const directory = await createTrail(2);
    const olderHead = readFileSync(auditHeadFile(directory));
    await write(directory, 2);
    writeFileSync(auditHeadFile(directory), olderHead);
    await write(directory, 1);
    expect(await verifyAudit({ directory })).toMatchObject({ ok: true, rows: 10 });
    await pruneAudit(await scratch.open(directory), new Date("2100-01-01"));
    const headAfterPruning = readHead(auditHeadFile(directory));
    writeFileSync(auditHeadFile(directory), olderHead);
    await write(directory, 1);
    expect(await verifyAudit({ directory })).toMatchObject({ ok: true, rows: 3 });
    expect(readHead(auditHeadFile(directory))?.count).toBe((headAfterPruning?.count ?? 0) + 2);
  });

  it("drover restored a backup", async () => {
    const directory = await createTrail(2);
    const file = join(directory, "copy");
    await backupStore({ directory, file }, new Date());
    await write(directory, 2);
    const restored = scratch.newDirectory();
    await restoreStore({ now: new Date(), directory: restored, file });
    await write(restored, 1);
    expect(await verifyAudit({ directory: restored })).toMatchObject({ ok: true, rows: 6 });
  });

  it("several stores write, one after the other and at the same time", async () => {
    const directory = scratch.newDirectory();
    const stores = await Promise.all([1, 2, 3].map(() => scratch.open(directory)));
    for (const store of stores) await recordRuns(store, 2);
    await Promise.all(stores.map((store) => recordRuns(store, 10)));
    expect(await verifyAudit({ directory })).toMatchObject({ ok: true, rows: 72 });
  });
});

it("keeps recording while audit.head is unusable, warns, and compares once it is usable", async () => {
  const directory = await createTrail(3);
  const head = readFileSync(auditHeadFile(directory));
  truncateTail(directory);
  rmSync(auditHeadFile(directory));
  // Not even root can read a directory as a file.
  mkdirSync(auditHeadFile(directory));
  const warned = new Promise<Error>((resolve) => {
    process.once("warning", resolve);
  });
  const store = await scratch.open(directory);
  await recordRuns(store, 1);
  expect(String(await warned)).toContain("audit.head could not be written");
  rmdirSync(auditHeadFile(directory));
  writeFileSync(auditHeadFile(directory), head);
  await recordRuns(store, 1);
  await expectRecorded(directory, 7, "did not match its head when row 7 was written");
});

async function createTrail(runs: number): Promise<string> {
  const directory = scratch.newDirectory();
  await write(directory, runs);
  return directory;
}

/** Opens, writes and closes the record, like a separate process. */
async function write(directory: string, runs: number): Promise<void> {
  const store = await scratch.open(directory);
  await recordRuns(store, runs);
  await store.close();
}

function truncateTail(directory: string): void {
  editDatabase(directory, "delete from audit_batches where first_no >= 5; delete from audit_rows where no >= 5");
}

function editDatabase(directory: string, sql: string): void {
  const db = openDatabase(databaseFile(directory), {});
  db.exec(sql);
  db.close();
}

function readMismatches(directory: string): unknown[] {
  const db = openDatabase(databaseFile(directory), {});
  const rows = db.prepare("select body from audit_rows where kind = 'head_mismatch' order by no").all();
  db.close();
  return rows.map((row) => JSON.parse(String(row["body"])));
}

async function expectRecorded(directory: string, row_no: number, what: string): Promise<void> {
  const result = await verifyAudit({ directory });
  expect(result).toMatchObject({ ok: false, first_bad: { row_no, what: expect.stringContaining(what) } });
  expect(result.head).toBe(`${readHead(auditHeadFile(directory))?.count}:${readHead(auditHeadFile(directory))?.mac}`);
}
