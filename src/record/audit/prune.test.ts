import { join } from "node:path";
import { expect, it } from "vitest";
import { executionStarted, numbered, recordRuns, sampleRun } from "../../../test/fixtures/record/sample.ts";
import { scratchStores } from "../../../test/fixtures/record/scratch.ts";
import type { SqliteStore } from "../open.ts";
import { openDatabase } from "../sqlite/driver.ts";
import { pruneAudit } from "./prune.ts";
import { verifyAudit } from "./verify.ts";

const scratch = scratchStores();
const [january, february, march] = [new Date("2026-01-01"), new Date("2026-02-01"), new Date("2026-03-01")];

it("removes old batches, records that, and leaves a chain that verifies", async () => {
  const { store, directory, setNow } = await openStoreAt(january);
  await recordRuns(store, 5);
  const recordedHead = (await verifyAudit({ directory })).head;
  setNow(march);
  await recordRuns(store, 3);
  expect(await pruneAudit(store, february)).toEqual({ rows: 10 });
  const result = await verifyAudit({ directory });
  expect(result).toMatchObject({
    ok: true,
    rows: 7,
    pruned: { rows: 10, batches: 10, before: february.toISOString() },
  });
  const pruneRows = store.connection.sql("select body from audit_rows where kind = 'prune'").all();
  expect(pruneRows.map((row) => JSON.parse(String(row["body"])))).toMatchObject([{ last_no: 10, rows: 10 }]);
  // The head recorded at the boundary is still in the chain. An older one can no longer be confirmed, and verify
  // reports that.
  expect(await verifyAudit({ directory, head: recordedHead })).toMatchObject({ ok: true });
  expect(await verifyAudit({ directory, head: `2:${"a".repeat(64)}` })).toMatchObject({
    ok: false,
    first_bad: { what: expect.stringContaining("retention") },
  });
  await recordRuns(store, 2);
  expect(await verifyAudit({ directory })).toMatchObject({ ok: true, rows: 11 });
});

it("can prune repeatedly, until only the record of pruning is left", async () => {
  const { store, directory, setNow } = await openStoreAt(january);
  await recordRuns(store, 700);
  setNow(february);
  expect(await pruneAudit(store, february)).toEqual({ rows: 1400 });
  expect(await pruneAudit(store, february)).toEqual({ rows: 0 });
  setNow(march);
  expect(await pruneAudit(store, march)).toEqual({ rows: 1 });
  expect(await verifyAudit({ directory })).toMatchObject({ ok: true, rows: 1, pruned: { rows: 1401 } });
  expect(store.connection.sql("select count(*) as count from audit_anchors").get()?.["count"]).toBe(1);
});

it("keeps the start of an execution that has not ended", async () => {
  const { store, directory, setNow } = await openStoreAt(january);
  await recordRuns(store, 1);
  const run = sampleRun();
  await store.apply([{ op: "create_run", run, events: numbered(run.run_id, 1, executionStarted(run.run_id)) }]);
  await recordRuns(store, 2);
  setNow(march);
  expect(await pruneAudit(store, february)).toEqual({ rows: 2 });
  expect(await store.read.execution(run.run_id)).toMatchObject({ end: null });
  expect(await verifyAudit({ directory })).toMatchObject({ ok: true });
});

it("detects a forged anchor by its missing seal", async () => {
  const { store, directory, setNow } = await openStoreAt(january);
  await recordRuns(store, 5);
  setNow(march);
  await recordRuns(store, 1);
  await pruneAudit(store, february);
  await store.close();
  const db = openDatabase(join(directory, "drover.db"), {});
  db.exec(
    "update audit_anchors set batch_no = 11, last_no = 11, mac = (select mac from audit_batches where batch_no = 11)",
  );
  db.exec("delete from audit_batches where batch_no = 11; delete from audit_rows where no = 11");
  db.close();
  expect(await verifyAudit({ directory })).toMatchObject({
    ok: false,
    first_bad: { what: expect.stringContaining("anchor") },
  });
});

async function openStoreAt(
  time: Date,
): Promise<{ store: SqliteStore; directory: string; setNow: (time: Date) => void }> {
  let now = time;
  const directory = scratch.newDirectory();
  const store = await scratch.open(directory, { now: () => now });
  return { store, directory, setNow: (later) => void (now = later) };
}
