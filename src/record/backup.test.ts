import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  watch,
  writeFileSync,
} from "node:fs";
import { randomBytes } from "node:crypto";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { drive } from "../../test/fixtures/dispatch/drive.ts";
import { runWithFiles, hashBytes } from "../../test/fixtures/record/files.ts";
import { executionStarted, buildFinish, numbered, sampleId, sampleRun } from "../../test/fixtures/record/sample.ts";
import { verifyAudit } from "./audit/verify.ts";
import { backupStore } from "./backup.ts";
import { openStore, type SqliteStore } from "./open.ts";
import { restoreStore } from "./restore.ts";

let root: string;
let store: SqliteStore;
const now = new Date();
const neverAborted = new AbortController().signal;
const open = (directory: string) => openStore({ directory, now: () => now, createIfMissing: true });
const recordRun = async (into: SqliteStore) => {
  const run = sampleRun();
  await into.apply([{ op: "create_run", run, events: numbered(run.run_id, 1, executionStarted(sampleId())) }]);
  return run.run_id;
};

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "drover-backup-"));
  store = await open(join(root, "state"));
});
afterEach(async () => {
  await store.close();
  rmSync(root, { recursive: true, force: true });
});

it("copies a store that is being written, and the restored copy can be continued", async () => {
  const before = await recordRun(store);
  const writing = Array.from({ length: 50 }, () => recordRun(store));
  const { head } = await backupStore({ directory: store.directory, file: join(root, "copy") }, now);
  await Promise.all(writing);
  expect(statSync(join(root, "copy")).mode & 0o777).toBe(0o600);
  expect(readdirSync(root).sort()).toEqual(["copy", "state"]);

  const { audit, made_at } = await restoreStore({ now, directory: join(root, "new"), file: join(root, "copy") });
  expect(made_at).toBe(now.toISOString());
  expect(audit).toMatchObject({ ok: true, head });
  const restored = await open(join(root, "new"));
  try {
    expect(await restored.read.run(before)).not.toBeNull();
    await restored.apply([buildFinish(before)]);
    await recordRun(restored);
  } finally {
    await restored.close();
  }
  expect(await verifyAudit({ directory: join(root, "new"), head })).toMatchObject({ ok: true });
});

it("includes files of any length, and refuses a backup whose files were changed", async () => {
  const contents = [randomBytes(2 * 1024 * 1024 + 17), Buffer.from("small: unmistakable"), Buffer.alloc(0)];
  const run_id = await runWithFiles(store, contents);
  const unused = Buffer.from("uploaded, never named");
  await store.blobs.put(Readable.from([unused]), { sha256: hashBytes(unused), size: unused.length }, neverAborted);
  await backupStore({ directory: store.directory, file: join(root, "copy") }, now);
  await restoreStore({ now, directory: join(root, "new"), file: join(root, "copy") });
  const restored = await open(join(root, "new"));
  try {
    expect(await restored.read.files(run_id)).toHaveLength(3);
    for (const bytes of contents) {
      const blob = await restored.blobs.open(hashBytes(bytes));
      expect(blob?.size).toBe(bytes.length);
      expect((await buffer(blob!.stream)).equals(bytes)).toBe(true);
    }
    expect(await restored.blobs.open(hashBytes(unused))).toBeNull();
    expect(restored.connection.sql("select count(*) as n from sqlite_master where name like 'backup%'").get()).toEqual({
      n: 0,
    });
  } finally {
    await restored.close();
  }
  expect(statSync(join(root, "new", "drover.db")).size).toBeLessThan(2 * 1024 * 1024);

  const bytes = readFileSync(join(root, "copy"));
  bytes.write("X", bytes.indexOf("small: unmistakable"));
  writeFileSync(join(root, "copy"), bytes);
  await expect(restoreStore({ now, directory: join(root, "newer"), file: join(root, "copy") })).rejects.toThrow(
    "was changed",
  );
  const remainingFiles = readdirSync(join(root, "newer"), { recursive: true, withFileTypes: true }).filter((entry) =>
    entry.isFile(),
  );
  expect(remainingFiles).toEqual([]);
});

it("includes uploads of a running run that no file refers to yet", async () => {
  const driver = drive(store, () => now);
  const runner = await driver.register("r");
  const run_id = await driver.submit();
  await driver.claim(runner);
  const facts = { sha256: hashBytes(Buffer.from("brought")), size: 7 };
  await store.blobs.put(Readable.from([Buffer.from("brought")]), facts, neverAborted);
  await store.apply([{ op: "add_upload", run_id, attempt: 1, runner, ...facts }]);
  await backupStore({ directory: store.directory, file: join(root, "copy") }, now);
  await restoreStore({ now, directory: join(root, "new"), file: join(root, "copy") });
  const restored = await open(join(root, "new"));
  try {
    expect(String(await buffer((await restored.blobs.open(facts.sha256))!.stream))).toBe("brought");
    const file = { type: "file" as const, path: "named", ...facts, media_type: "text/plain" };
    await drive(restored, () => now).append(runner, run_id, 1, 1, file);
    expect(await restored.read.files(run_id)).toMatchObject([{ path: "named" }]);
  } finally {
    await restored.close();
  }
});

it("omits files whose contents were removed during the backup", async () => {
  const run_id = await runWithFiles(store, [Buffer.from("here"), Buffer.from("gone")]);
  const sha256 = hashBytes(Buffer.from("gone"));
  rmSync(join(store.directory, "files", sha256.slice(0, 2), sha256));
  await backupStore({ directory: store.directory, file: join(root, "copy") }, now);
  await restoreStore({ now, directory: join(root, "new"), file: join(root, "copy") });
  const restored = await open(join(root, "new"));
  expect((await restored.read.files(run_id)).map(({ path }) => path)).toEqual(["file 0"]);
  await restored.close();
});

it("never overwrites a file or a record", async () => {
  writeFileSync(join(root, "copy"), "other file");
  await expect(backupStore({ directory: store.directory, file: join(root, "copy") }, now)).rejects.toThrow(
    "already exists",
  );
  expect(readFileSync(join(root, "copy"), "utf8")).toBe("other file");
  await backupStore({ directory: store.directory, file: join(root, "good") }, now);
  await expect(restoreStore({ now, directory: store.directory, file: join(root, "good") })).rejects.toThrow(
    "already contains a record",
  );
});

it("refuses a file that is not a backup or was changed, and leaves nothing behind", async () => {
  await recordRun(store);
  const directory = join(root, "new");
  await expect(restoreStore({ now, directory, file: join(root, "none") })).rejects.toThrow("does not exist");
  writeFileSync(join(root, "text"), "not a database at all, whatever its length may be");
  await expect(restoreStore({ now, directory, file: join(root, "text") })).rejects.toThrow("cannot be restored");
  await expect(restoreStore({ now, directory, file: join(store.directory, "drover.db") })).rejects.toThrow(
    "cannot be restored",
  );
  await backupStore({ directory: store.directory, file: join(root, "copy") }, now);
  const bytes = readFileSync(join(root, "copy"));
  // Replaces the text everywhere: in the run, in its events and in the audit row, where verification detects it.
  for (let offset = bytes.indexOf("echo hello"); offset >= 0; offset = bytes.indexOf("echo hello", offset))
    bytes[offset] = "E".charCodeAt(0);
  chmodSync(join(root, "copy"), 0o600);
  writeFileSync(join(root, "copy"), bytes);
  await expect(restoreStore({ now, directory, file: join(root, "copy") })).rejects.toThrow("audit chain is broken");
  expect(readdirSync(directory)).toEqual([]);
});

it("keeps the store's id, which is unique", async () => {
  const id = await store.storeId();
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  await backupStore({ directory: store.directory, file: join(root, "copy") }, now);
  await restoreStore({ now, directory: join(root, "new"), file: join(root, "copy") });
  const others = [await open(store.directory), await open(join(root, "new")), await open(join(root, "another"))];
  try {
    const [sameStore, restored, another] = await Promise.all(others.map((other) => other.storeId()));
    expect([sameStore, restored]).toEqual([id, id]);
    expect(another).not.toBe(id);
  } finally {
    for (const other of others) await other.close();
  }
});

it("can be restored again after a killed attempt, whatever that left behind", async () => {
  const run_id = await recordRun(store);
  const { head } = await backupStore({ directory: store.directory, file: join(root, "copy") }, now);
  const key = readFileSync(join(store.directory, "audit.key"));
  const directory = join(root, "new");
  mkdirSync(directory);
  for (const name of ["drover.db.part", "drover.db.part-journal", "drover.db.part-wal", "audit.head"])
    writeFileSync(join(directory, name), "half");
  writeFileSync(join(directory, "audit.key"), key, { mode: 0o600 });
  await expect(restoreStore({ now, directory, file: join(root, "copy") })).resolves.toMatchObject({
    audit: { ok: true, head },
  });
  expect(readdirSync(directory).sort()).toEqual(["audit.head", "audit.key", "drover.db"]);
  const restored = await open(directory);
  expect(await restored.read.run(run_id)).not.toBeNull();
  expect(restored.connection.sql("pragma journal_mode").get()).toEqual({ journal_mode: "wal" });
  await restored.close();
});

it("leaves nothing of an aborted backup behind", async () => {
  await recordRun(store);
  const signal = AbortSignal.abort(new Error("nobody waits"));
  const creating = backupStore({ directory: store.directory, file: join(root, "copy"), signal }, now);
  await expect(creating).rejects.toThrow("nobody waits");
  expect(readdirSync(root)).toEqual(["state"]);
});

it("keeps the key of another record", async () => {
  await recordRun(store);
  await backupStore({ directory: store.directory, file: join(root, "copy") }, now);
  const directory = join(root, "new");
  mkdirSync(directory);
  writeFileSync(join(directory, "audit.key"), `${"0".repeat(64)}\n`, { mode: 0o600 });
  await expect(restoreStore({ now, directory, file: join(root, "copy") })).rejects.toThrow("already contains a record");
  expect(readdirSync(directory)).toEqual(["audit.key"]);
});

it("publishes nothing before it is verified", async () => {
  await recordRun(store);
  await backupStore({ directory: store.directory, file: join(root, "copy") }, now);
  const bytes = readFileSync(join(root, "copy"));
  for (let offset = bytes.indexOf("echo hello"); offset >= 0; offset = bytes.indexOf("echo hello", offset))
    bytes[offset] = "E".charCodeAt(0);
  writeFileSync(join(root, "copy"), bytes);
  const directory = join(root, "new");
  mkdirSync(directory);
  const seen = new Set<string | null>();
  const watching = watch(directory, (_, name) => seen.add(name));
  try {
    await expect(restoreStore({ now, directory, file: join(root, "copy") })).rejects.toThrow("audit chain is broken");
    writeFileSync(join(directory, "last"), "");
    await expect.poll(() => [...seen]).toContain("last");
  } finally {
    watching.close();
  }
  expect(seen).toContain("drover.db.part");
  expect([...seen]).not.toContain("drover.db");
  expect([...seen]).not.toContain("audit.key");
});
