import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { executionStarted, finishOf, numbered, sampleId, sampleRun } from "../../test/fixtures/record/sample.ts";
import { verifyAudit } from "./audit/verify.ts";
import { backupStore } from "./backup.ts";
import { openStore, type SqliteStore } from "./open.ts";
import { restoreStore } from "./restore.ts";

let folder: string;
let store: SqliteStore;
const now = new Date();
const open = (directory: string) => openStore({ directory, now: () => now, createIfMissing: true });
const record = async (into: SqliteStore) => {
  const run = sampleRun();
  await into.apply([{ op: "create_run", run, events: numbered(run.run_id, 1, executionStarted(sampleId())) }]);
  return run.run_id;
};

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "drover-backup-"));
  store = await open(join(folder, "state"));
});
afterEach(async () => {
  await store.close();
  rmSync(folder, { recursive: true, force: true });
});

it("copies a store that is being written, and the copy goes on where it was", async () => {
  const before = await record(store);
  const writing = Array.from({ length: 50 }, () => record(store));
  const { head } = await backupStore({ directory: store.directory, file: join(folder, "copy") }, now);
  await Promise.all(writing);
  expect(statSync(join(folder, "copy")).mode & 0o777).toBe(0o600);
  expect(readdirSync(folder).sort()).toEqual(["copy", "state"]);

  const { audit, made_at } = await restoreStore({ directory: join(folder, "new"), file: join(folder, "copy") });
  expect(made_at).toBe(now.toISOString());
  expect(audit).toMatchObject({ ok: true, head });
  const restored = await open(join(folder, "new"));
  try {
    expect(await restored.read.run(before)).not.toBeNull();
    await restored.apply([finishOf(before)]);
    await record(restored);
  } finally {
    await restored.close();
  }
  expect(await verifyAudit({ directory: join(folder, "new"), head })).toMatchObject({ ok: true });
});

it("never overwrites a file or a state", async () => {
  writeFileSync(join(folder, "copy"), "mine");
  await expect(backupStore({ directory: store.directory, file: join(folder, "copy") }, now)).rejects.toThrow(
    "exists already",
  );
  expect(readFileSync(join(folder, "copy"), "utf8")).toBe("mine");
  await backupStore({ directory: store.directory, file: join(folder, "good") }, now);
  await expect(restoreStore({ directory: store.directory, file: join(folder, "good") })).rejects.toThrow(
    "There is a state",
  );
});

it("refuses what is no backup, or was changed since, and leaves nothing", async () => {
  await record(store);
  const directory = join(folder, "new");
  await expect(restoreStore({ directory, file: join(folder, "none") })).rejects.toThrow("does not exist");
  writeFileSync(join(folder, "text"), "not a database at all, whatever its length may be");
  await expect(restoreStore({ directory, file: join(folder, "text") })).rejects.toThrow("not a backup");
  await expect(restoreStore({ directory, file: join(store.directory, "drover.db") })).rejects.toThrow("not a backup");
  await backupStore({ directory: store.directory, file: join(folder, "copy") }, now);
  const bytes = readFileSync(join(folder, "copy"));
  // wherever it stands: in the run, in its events, and in the audit row, which is the one that tells
  for (let at = bytes.indexOf("echo hello"); at >= 0; at = bytes.indexOf("echo hello", at))
    bytes[at] = "E".charCodeAt(0);
  chmodSync(join(folder, "copy"), 0o600);
  writeFileSync(join(folder, "copy"), bytes);
  await expect(restoreStore({ directory, file: join(folder, "copy") })).rejects.toThrow("audit chain is broken");
  expect(readdirSync(directory)).toEqual([]);
});
