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
import { runWithFiles, sha256Of } from "../../test/fixtures/record/files.ts";
import { executionStarted, finishOf, numbered, sampleId, sampleRun } from "../../test/fixtures/record/sample.ts";
import { verifyAudit } from "./audit/verify.ts";
import { backupStore } from "./backup.ts";
import { openStore, type SqliteStore } from "./open.ts";
import { restoreStore } from "./restore.ts";

let folder: string;
let store: SqliteStore;
const now = new Date();
const never = new AbortController().signal;
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

  const { audit, made_at } = await restoreStore({ now, directory: join(folder, "new"), file: join(folder, "copy") });
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

it("carries the files of runs, of several pieces and of none, and refuses those that were changed", async () => {
  const contents = [randomBytes(2 * 1024 * 1024 + 17), Buffer.from("small: unmistakable"), Buffer.alloc(0)];
  const run_id = await runWithFiles(store, contents);
  const unused = Buffer.from("uploaded, never named");
  await store.blobs.put(Readable.from([unused]), { sha256: sha256Of(unused), size: unused.length }, never);
  await backupStore({ directory: store.directory, file: join(folder, "copy") }, now);
  await restoreStore({ now, directory: join(folder, "new"), file: join(folder, "copy") });
  const restored = await open(join(folder, "new"));
  try {
    expect(await restored.read.files(run_id)).toHaveLength(3);
    for (const bytes of contents) {
      const blob = await restored.blobs.open(sha256Of(bytes));
      expect(blob?.size).toBe(bytes.length);
      expect((await buffer(blob!.stream)).equals(bytes)).toBe(true);
    }
    expect(await restored.blobs.open(sha256Of(unused))).toBeNull();
    expect(restored.connection.sql("select count(*) as n from sqlite_master where name like 'backup%'").get()).toEqual({
      n: 0,
    });
  } finally {
    await restored.close();
  }
  expect(statSync(join(folder, "new", "drover.db")).size).toBeLessThan(2 * 1024 * 1024);

  const bytes = readFileSync(join(folder, "copy"));
  bytes.write("X", bytes.indexOf("small: unmistakable"));
  writeFileSync(join(folder, "copy"), bytes);
  await expect(restoreStore({ now, directory: join(folder, "newer"), file: join(folder, "copy") })).rejects.toThrow(
    "were changed",
  );
  const left = readdirSync(join(folder, "newer"), { recursive: true, withFileTypes: true }).filter((one) =>
    one.isFile(),
  );
  expect(left).toEqual([]);
});

it("carries what a run under way has brought and not named yet", async () => {
  const d = drive(store, () => now);
  const runner = await d.register("r");
  const run_id = await d.submit();
  await d.claim(runner);
  const facts = { sha256: sha256Of(Buffer.from("brought")), size: 7 };
  await store.blobs.put(Readable.from([Buffer.from("brought")]), facts, never);
  await store.apply([{ op: "add_upload", run_id, attempt: 1, runner, ...facts }]);
  await backupStore({ directory: store.directory, file: join(folder, "copy") }, now);
  await restoreStore({ now, directory: join(folder, "new"), file: join(folder, "copy") });
  const restored = await open(join(folder, "new"));
  try {
    expect(String(await buffer((await restored.blobs.open(facts.sha256))!.stream))).toBe("brought");
    const file = { type: "file" as const, path: "named", ...facts, media_type: "text/plain" };
    await drive(restored, () => now).append(runner, run_id, 1, 1, file);
    expect(await restored.read.files(run_id)).toMatchObject([{ path: "named" }]);
  } finally {
    await restored.close();
  }
});

it("leaves out files whose contents went while it was made", async () => {
  const run_id = await runWithFiles(store, [Buffer.from("here"), Buffer.from("gone")]);
  const sha256 = sha256Of(Buffer.from("gone"));
  rmSync(join(store.directory, "files", sha256.slice(0, 2), sha256));
  await backupStore({ directory: store.directory, file: join(folder, "copy") }, now);
  await restoreStore({ now, directory: join(folder, "new"), file: join(folder, "copy") });
  const restored = await open(join(folder, "new"));
  expect((await restored.read.files(run_id)).map(({ path }) => path)).toEqual(["file 0"]);
  await restored.close();
});

it("never overwrites a file or a state", async () => {
  writeFileSync(join(folder, "copy"), "mine");
  await expect(backupStore({ directory: store.directory, file: join(folder, "copy") }, now)).rejects.toThrow(
    "already exists",
  );
  expect(readFileSync(join(folder, "copy"), "utf8")).toBe("mine");
  await backupStore({ directory: store.directory, file: join(folder, "good") }, now);
  await expect(restoreStore({ now, directory: store.directory, file: join(folder, "good") })).rejects.toThrow(
    "already contains a record",
  );
});

it("refuses what is no backup, or was changed since, and leaves nothing", async () => {
  await record(store);
  const directory = join(folder, "new");
  await expect(restoreStore({ now, directory, file: join(folder, "none") })).rejects.toThrow("does not exist");
  writeFileSync(join(folder, "text"), "not a database at all, whatever its length may be");
  await expect(restoreStore({ now, directory, file: join(folder, "text") })).rejects.toThrow("cannot be restored");
  await expect(restoreStore({ now, directory, file: join(store.directory, "drover.db") })).rejects.toThrow(
    "cannot be restored",
  );
  await backupStore({ directory: store.directory, file: join(folder, "copy") }, now);
  const bytes = readFileSync(join(folder, "copy"));
  // wherever it stands: in the run, in its events, and in the audit row, which is the one that tells
  for (let at = bytes.indexOf("echo hello"); at >= 0; at = bytes.indexOf("echo hello", at))
    bytes[at] = "E".charCodeAt(0);
  chmodSync(join(folder, "copy"), 0o600);
  writeFileSync(join(folder, "copy"), bytes);
  await expect(restoreStore({ now, directory, file: join(folder, "copy") })).rejects.toThrow("audit chain is broken");
  expect(readdirSync(directory)).toEqual([]);
});

it("keeps the store's id, which no other store has", async () => {
  const id = await store.storeId();
  expect(id).toMatch(/^[0-9a-f]{32}$/);
  await backupStore({ directory: store.directory, file: join(folder, "copy") }, now);
  await restoreStore({ now, directory: join(folder, "new"), file: join(folder, "copy") });
  const others = [await open(store.directory), await open(join(folder, "new")), await open(join(folder, "another"))];
  try {
    const [again, restored, another] = await Promise.all(others.map((other) => other.storeId()));
    expect([again, restored]).toEqual([id, id]);
    expect(another).not.toBe(id);
  } finally {
    for (const other of others) await other.close();
  }
});

it("can be restored again where an earlier try was killed, whatever that left", async () => {
  const run_id = await record(store);
  const { head } = await backupStore({ directory: store.directory, file: join(folder, "copy") }, now);
  const key = readFileSync(join(store.directory, "audit.key"));
  const directory = join(folder, "new");
  mkdirSync(directory);
  for (const name of ["drover.db.part", "drover.db.part-journal", "drover.db.part-wal", "audit.head"])
    writeFileSync(join(directory, name), "half");
  writeFileSync(join(directory, "audit.key"), key, { mode: 0o600 });
  await expect(restoreStore({ now, directory, file: join(folder, "copy") })).resolves.toMatchObject({
    audit: { ok: true, head },
  });
  expect(readdirSync(directory).sort()).toEqual(["audit.head", "audit.key", "drover.db"]);
  const restored = await open(directory);
  expect(await restored.read.run(run_id)).not.toBeNull();
  expect(restored.connection.sql("pragma journal_mode").get()).toEqual({ journal_mode: "wal" });
  await restored.close();
});

it("leaves nothing of one that nobody wants any more", async () => {
  await record(store);
  const signal = AbortSignal.abort(new Error("nobody waits"));
  const making = backupStore({ directory: store.directory, file: join(folder, "copy"), signal }, now);
  await expect(making).rejects.toThrow("nobody waits");
  expect(readdirSync(folder)).toEqual(["state"]);
});

it("keeps a key that is another record's", async () => {
  await record(store);
  await backupStore({ directory: store.directory, file: join(folder, "copy") }, now);
  const directory = join(folder, "new");
  mkdirSync(directory);
  writeFileSync(join(directory, "audit.key"), `${"0".repeat(64)}\n`, { mode: 0o600 });
  await expect(restoreStore({ now, directory, file: join(folder, "copy") })).rejects.toThrow(
    "already contains a record",
  );
  expect(readdirSync(directory)).toEqual(["audit.key"]);
});

it("gives nothing its name before it is verified", async () => {
  await record(store);
  await backupStore({ directory: store.directory, file: join(folder, "copy") }, now);
  const bytes = readFileSync(join(folder, "copy"));
  for (let at = bytes.indexOf("echo hello"); at >= 0; at = bytes.indexOf("echo hello", at))
    bytes[at] = "E".charCodeAt(0);
  writeFileSync(join(folder, "copy"), bytes);
  const directory = join(folder, "new");
  mkdirSync(directory);
  const seen = new Set<string | null>();
  const watching = watch(directory, (_, name) => seen.add(name));
  try {
    await expect(restoreStore({ now, directory, file: join(folder, "copy") })).rejects.toThrow("audit chain is broken");
    writeFileSync(join(directory, "last"), "");
    await expect.poll(() => [...seen]).toContain("last");
  } finally {
    watching.close();
  }
  expect(seen).toContain("drover.db.part");
  expect([...seen]).not.toContain("drover.db");
  expect([...seen]).not.toContain("audit.key");
});
