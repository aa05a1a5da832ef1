import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { executionStarted, buildFinish, numbered, sampleId, sampleRun } from "../../test/fixtures/record/sample.ts";
import { openStore, type SqliteStore } from "./open.ts";
import { restoreStore } from "./restore.ts";

let root: string;
let directory: string;
let file: string;
let store: SqliteStore;
const now = (): Date => new Date();
const getHeadCopyFile = (path: string) => join(root, "user", "heads", basename(path));
const open = (path: string) =>
  openStore({ directory: path, headCopy: getHeadCopyFile(path), now, createIfMissing: true });
const recordRun = async (into: SqliteStore): Promise<string> => {
  const run = sampleRun();
  await into.apply([{ op: "create_run", run, events: numbered(run.run_id, 1, executionStarted(sampleId())) }]);
  return run.run_id;
};

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "drover-held-"));
  directory = join(root, "state");
  file = join(directory, "drover.db");
  store = await open(directory);
});
afterEach(async () => {
  await store.close();
  rmSync(root, { recursive: true, force: true });
});

const findRescued = (): string[] =>
  [directory, join(root, "user", "rescued"), root]
    .filter((at) => existsSync(at) && statSync(at).isDirectory())
    .flatMap((at) => readdirSync(at).map((name) => join(at, name)))
    .filter((path) => path.endsWith(".backup"));

describe.each<[string, () => unknown]>([
  ["deleted", () => rmSync(file)],
  ["deleted with everything beside it", () => ["", "-wal", "-shm"].forEach((end) => rmSync(file + end))],
  ["moved within its directory", () => renameSync(file, `${file}.old`)],
  ["moved elsewhere", () => renameSync(file, join(root, "elsewhere"))],
  [
    "replaced by an empty file",
    () => {
      rmSync(file);
      writeFileSync(file, "");
    },
  ],
  [
    "replaced by a copy of itself",
    () => {
      copyFileSync(file, `${file}.copy`);
      renameSync(`${file}.copy`, file);
    },
  ],
  [
    "replaced by a directory",
    () => {
      rmSync(file);
      mkdirSync(file);
    },
  ],
  [
    "replaced by a dangling link",
    () => {
      rmSync(file);
      symlinkSync(join(root, "nothing"), file);
    },
  ],
  [
    "replaced by a new record",
    async () => {
      rmSync(directory, { recursive: true });
      await (await open(directory)).close();
    },
  ],
  ["emptied", () => truncateSync(file, 0)],
  ["left without its WAL", () => rmSync(`${file}-wal`)],
  [
    "given another WAL",
    () => {
      rmSync(`${file}-wal`);
      writeFileSync(`${file}-wal`, "");
    },
  ],
  ["left without its shared memory", () => rmSync(`${file}-shm`)],
  ["deleted with its directory", () => rmSync(directory, { recursive: true })],
  ["moved with its directory", () => renameSync(directory, join(root, "other"))],
  [
    "hidden by a file instead of its directory",
    () => {
      renameSync(directory, join(root, "other"));
      writeFileSync(directory, "");
    },
  ],
])("a database that was %s while it was open", (what, damage) => {
  it("acknowledges nothing more, and is rescued with everything that was acknowledged", async () => {
    const runs = [await recordRun(store), await recordRun(store)];
    expect(await store.storageError()).toBeNull();
    await damage();
    await expect(recordRun(store)).rejects.toMatchObject({
      code: "DROVER-STA-012",
      next: expect.stringMatching(/\.backup/),
    });
    await expect(store.apply([buildFinish(runs[0]!)])).rejects.toMatchObject({ code: "DROVER-STA-012" });
    expect(await store.storageError()).toMatchObject({ code: "DROVER-STA-012" });
    // A file emptied in place cannot be read either, but SQLite still had the rest in its WAL.
    const [backup, ...more] = findRescued();
    expect(more).toEqual([]);
    expect(statSync(backup!).mode & 0o777).toBe(0o600);
    expect([directory, join(root, "user", "rescued")]).toContain(dirname(backup!));
    expect(statSync(dirname(backup!)).mode & 0o777).toBe(0o700);
    if (what === "emptied") return;
    const { audit } = await restoreStore({
      directory: join(root, "new"),
      file: backup!,
      now: now(),
      keepTokens: true,
    });
    expect(audit).toMatchObject({ ok: true });
    const restored = await open(join(root, "new"));
    for (const run_id of runs) expect(await restored.read.run(run_id)).toMatchObject({ run_id, status: "running" });
    await restored.close();
  });
});

it.each([
  ["deleted", () => rmSync(file)],
  ["moved with its directory", () => renameSync(directory, join(root, "other"))],
])("a record that was %s can be restored in its place as the message says", async (_, damage) => {
  const run_id = await recordRun(store);
  damage();
  await expect(recordRun(store)).rejects.toMatchObject({
    next: expect.stringMatching(/move .* (out of|away if it exists).* drover restore --keep-tokens \//),
  });
  const [backup] = findRescued();
  if (dirname(backup!) === directory)
    for (const name of readdirSync(directory))
      if (name !== basename(backup!)) renameSync(join(directory, name), join(root, name));
  await restoreStore({ directory, file: backup!, now: now(), keepTokens: true });
  const restored = await open(directory);
  expect(await restored.read.run(run_id)).toMatchObject({ run_id });
  await restored.close();
});

it("rescues a record into a new record directory if there is no user state directory, and puts nothing beside it", async () => {
  const alone = await openStore({ directory: join(root, "a", "record"), now, createIfMissing: true });
  await recordRun(alone);
  rmSync(join(root, "a"), { recursive: true });
  await expect(recordRun(alone)).rejects.toMatchObject({ code: "DROVER-STA-012" });
  await alone.close();
  expect(readdirSync(join(root, "a"))).toEqual(["record"]);
  expect(readdirSync(join(root, "a", "record"))).toEqual([expect.stringMatching(/^drover-rescued-.*\.backup$/)]);
});

it("continues when the files are back, and rescues the record again when they disappear again", async () => {
  const before = await recordRun(store);
  renameSync(file, `${file}.old`);
  await expect(recordRun(store)).rejects.toMatchObject({ code: "DROVER-STA-012" });
  renameSync(`${file}.old`, file);
  expect(await store.storageError()).toBeNull();
  const after = await recordRun(store);
  for (const run_id of [before, after]) expect(await store.read.run(run_id)).not.toBeNull();
  renameSync(file, `${file}.old`);
  await expect(recordRun(store)).rejects.toMatchObject({ code: "DROVER-STA-012" });
  expect(findRescued()).toHaveLength(2);
});

it("tolerates everything that other users of the same record do", async () => {
  linkSync(file, join(root, "second name"));
  chmodSync(file, 0o640);
  const others = await Promise.all([open(directory), open(directory)]);
  for (const other of others) await recordRun(other);
  await recordRun(store);
  for (const other of others) await other.close();
  store.connection.exec("pragma wal_checkpoint(truncate)");
  await recordRun(store);
  expect(await store.storageError()).toBeNull();
  expect(findRescued()).toEqual([]);
});

it("acknowledges nothing once the files are deleted, even after many commits", async () => {
  for (let no = 0; no < 60; no += 1) await recordRun(store);
  rmSync(file);
  await expect
    .poll(() =>
      recordRun(store).then(
        () => null,
        (fault) => fault.code,
      ),
    )
    .toBe("DROVER-STA-012");
});
