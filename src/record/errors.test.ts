import { spawnSync } from "node:child_process";
import {
  chmodSync,
  chownSync,
  closeSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { recordDirectory } from "../model/state-layout.ts";
import { workers } from "../../test/fixtures/record/processes.ts";
import { executionStarted, numbered, recordRuns, sampleRun } from "../../test/fixtures/record/sample.ts";
import { scratchStores } from "../../test/fixtures/record/scratch.ts";
import { verifyAudit } from "./audit/verify.ts";
import { connect } from "./sqlite/connection.ts";
import { openDatabase } from "./sqlite/driver.ts";

const scratch = scratchStores();
const { start } = workers();
const isRoot = process.getuid?.() === 0;
const nobody = 65534;

describe("a new state directory", () => {
  it("is accessible to its owner only and, as .drover, ignored by git", async () => {
    const state = join(dirname(scratch.newDirectory()), "deep", ".drover");
    const directory = recordDirectory(state);
    await recordRuns(await scratch.open(directory), 1);
    expect(statSync(directory).mode & 0o777).toBe(0o700);
    for (const name of ["drover.db", "drover.db-wal", "audit.key", "audit.head"]) {
      expect([name, statSync(join(directory, name)).mode & 0o777]).toEqual([name, 0o600]);
    }
    expect(readFileSync(join(state, ".gitignore"), "utf8")).toBe("*\n");
    expect(readdirSync(directory).filter((name) => !/^(drover\.db(-wal|-shm)?|audit\.(key|head))$/.test(name))).toEqual(
      [],
    );
  });

  it("is only created on request", async () => {
    const directory = scratch.newDirectory();
    await expect(scratch.open(directory, { createIfMissing: false })).rejects.toMatchObject({ code: "DROVER-STA-006" });
    await expect(scratch.open(directory, { createIfMissing: false, mode: "read" })).rejects.toMatchObject({
      code: "DROVER-STA-006",
    });
    expect(existsSync(directory)).toBe(false);
  });

  it("cannot be a file", async () => {
    const directory = scratch.newDirectory();
    writeFileSync(directory, "");
    await expect(scratch.open(directory)).rejects.toMatchObject({
      code: "DROVER-STA-006",
      next: expect.stringContaining("DROVER_STATE_DIR"),
    });
  });
});

describe("a locked database", () => {
  it("is waited for", async () => {
    const { directory, store } = await openUsedStore({ lockWaitMs: 30_000 });
    const other = lock(directory);
    const recorded = recordRuns(store, 1);
    await new Promise((resolve) => setTimeout(resolve, 50));
    other.exec("commit");
    other.close();
    await recorded;
    expect(await verifyAudit({ directory })).toMatchObject({ ok: true, rows: 6 });
  });

  it("fails after the wait, with nothing stored", async () => {
    const { directory, store } = await openUsedStore({ lockWaitMs: 60 });
    const other = lock(directory);
    const run = sampleRun();
    const events = numbered(run.run_id, 1, executionStarted(run.run_id));
    const calls = [1, 2].map(() => store.apply([{ op: "create_run", run, events }]));
    for (const call of calls) {
      await expect(call).rejects.toMatchObject({
        name: "HostError",
        code: "DROVER-STA-003",
        message: expect.stringContaining("drover.db"),
      });
    }
    other.exec("rollback");
    other.close();
    expect(await store.read.run(run.run_id)).toBeNull();
    expect(await store.apply([{ op: "create_run", run, events }])).toEqual([{ ok: true, last_n: 1 }]);
  });
});

describe("a full disk", () => {
  it("fails every waiting call and stores nothing", async () => {
    const { directory, store } = await openUsedStore();
    store.connection.exec("pragma max_page_count = 1");
    const big = sampleRun({ prompt: "x".repeat(500_000) });
    const small = sampleRun();
    const events = numbered(small.run_id, 1, executionStarted(small.run_id));
    const calls = [
      store.apply([{ op: "create_run", run: small, events }]),
      store.apply([{ op: "create_run", run: big, events: [] }]),
    ];
    for (const call of calls) await expect(call).rejects.toMatchObject({ name: "HostError", code: "DROVER-STA-002" });
    expect(await store.read.run(small.run_id)).toBeNull();
    expect(await verifyAudit({ directory })).toMatchObject({ ok: true, rows: 4 });
    store.connection.exec("pragma max_page_count = 1000000");
    expect(await store.apply([{ op: "create_run", run: big, events: [] }])).toEqual([{ ok: true, last_n: 0 }]);
  });

  it("is reported on a real file system that is full", async () => {
    const directory = scratch.newDirectory();
    mkdirSync(directory, { recursive: true });
    // Uses a small file system if this host lets us mount one; the test above needs none.
    const mount = ["unshare", "-m", "sh", "-c", `mount -t tmpfs -o size=600k none '${directory}' && exec "$@"`, "sh"];
    const [program = "", ...rest] = mount;
    if (spawnSync(program, [...rest, "true"]).status !== 0) return;
    const worker = start([directory, 1, 1_000_000], mount);
    expect(await worker.ended).toBe(1);
    expect(worker.lines.at(-1)).toMatch(/^failed DROVER-STA-002 /);
    expect(worker.lines.length).toBeGreaterThan(2);
  });
});

describe("a directory that this user cannot write to", () => {
  it("refuses writes but can be read", async () => {
    const { directory, store } = await openUsedStore();
    await store.close();
    chmodSync(join(directory, "audit.key"), 0o600);
    makeReadOnly(directory);
    const worker = start([directory, 1, 1, ...(isRoot ? [nobody] : [])]);
    expect(await worker.ended).toBe(1);
    // Another user cannot read the key either, and that is reported first.
    expect(worker.lines[0]).toMatch(isRoot ? /^failed DROVER-(STA-001|AUD-001) / : /^failed DROVER-STA-001 /);
    expect(await verifyAudit({ directory })).toMatchObject({ ok: true, rows: 4 });
    chmodSync(directory, 0o700);
  });

  it("is read without creating files beside it, whatever its name", async () => {
    const directory = join(dirname(scratch.newDirectory()), "50% of #1? ü");
    const { file } = await createClosedStore(2, directory);
    for (const name of readdirSync(directory)) if (/-(wal|shm)$/.test(name)) rmSync(join(directory, name));
    const connection = connect(file, "immutable");
    expect(connection.sql("select count(*) as count from runs").get()).toEqual({ count: 2 });
    connection.close();
    expect(readdirSync(directory)).toEqual(["audit.head", "audit.key", "drover.db"]);
  });

  it("does not get a new database", async () => {
    const parent = dirname(scratch.newDirectory());
    chmodSync(parent, 0o555);
    const worker = start([join(parent, "state"), 1, 1, ...(isRoot ? [nobody] : [])]);
    expect(await worker.ended).toBe(1);
    chmodSync(parent, 0o755);
    expect(worker.lines[0]).toMatch(/^failed DROVER-STA-001 /);
    expect(readdirSync(parent)).toEqual([]);
  });
});

describe("a damaged database", () => {
  const page = 4096;

  it("is refused when it is another kind of file", async () => {
    const { directory, file } = await createClosedStore();
    overwrite(file, 0, Buffer.alloc(100, "no database "));
    const before = readFileSync(file);
    await expect(scratch.open(directory)).rejects.toMatchObject({
      name: "HostError",
      code: "DROVER-STA-004",
      next: expect.stringContaining("backup"),
    });
    await expect(verifyAudit({ directory })).rejects.toMatchObject({ code: "DROVER-STA-004" });
    expect(readFileSync(file).equals(before)).toBe(true);
  });

  it("is reported when a page in the middle is overwritten, and nothing is stored", async () => {
    const { directory, file } = await createClosedStore(60);
    for (let offset = page; offset < statSync(file).size; offset += page)
      overwrite(file, offset, Buffer.alloc(page, 0xa5));
    const run = sampleRun();
    const attempt = scratch.open(directory).then((store) => store.apply([{ op: "create_run", run, events: [] }]));
    await expect(attempt).rejects.toMatchObject({ name: "HostError", code: "DROVER-STA-004" });
    await expect(verifyAudit({ directory })).rejects.toMatchObject({ code: "DROVER-STA-004" });
  });

  it("is reported when it was truncated", async () => {
    const { directory, file } = await createClosedStore(60);
    truncateSync(file, page * 4);
    await expect(scratch.open(directory).then((store) => store.read.runs({}, { limit: 10 }))).rejects.toMatchObject({
      code: "DROVER-STA-004",
    });
    await expect(verifyAudit({ directory })).rejects.toMatchObject({ code: "DROVER-STA-004" });
  });

  it("is detected by verify when it was emptied or removed, because audit.head is ahead", async () => {
    for (const lose of [(file: string) => truncateSync(file, 0), (file: string) => rmSync(file)]) {
      const directory = scratch.newDirectory();
      await start([directory, 1, 2]).ended;
      lose(join(directory, "drover.db"));
      await (await scratch.open(directory)).close();
      expect(await verifyAudit({ directory })).toMatchObject({
        ok: false,
        rows: 0,
        first_bad: { what: expect.stringContaining("cut off") },
      });
    }
  });
});

it("leaves a database of a newer version of Drover alone", async () => {
  const { directory, file } = await createClosedStore();
  const db = openDatabase(file, {});
  db.exec("pragma user_version = 99");
  db.close();
  const before = readFileSync(file);
  for (const mode of ["read", "write"] as const) {
    await expect(scratch.open(directory, { mode })).rejects.toMatchObject({
      name: "HostError",
      code: "DROVER-STA-005",
      message: expect.stringContaining("99"),
    });
  }
  expect(readFileSync(file).equals(before)).toBe(true);
});

describe("an audit key", () => {
  const faults: [string, (file: string) => void, asRoot?: true][] = [
    ["of another user", (file) => chownSync(file, nobody, nobody), true],
    ["in a directory of another user", (file) => chownSync(dirname(file), nobody, nobody), true],
    ["that others can read", (file) => chmodSync(file, 0o640)],
    ["that is missing although there are rows", (file) => rmSync(file)],
    ["that is empty", (file) => writeFileSync(file, "")],
    ["that is not a file", (file) => (rmSync(file), mkdirSync(file, 0o700))],
  ];
  for (const [what, damage, asRoot = false] of faults) {
    it.runIf(isRoot || !asRoot)(`${what} is refused for writing, and not needed for reading`, async () => {
      const { directory } = await createClosedStore();
      const file = join(directory, "audit.key");
      damage(file);
      await expect(scratch.open(directory)).rejects.toMatchObject({
        name: "HostError",
        code: "DROVER-AUD-001",
        field: file,
      });
      await expect(verifyAudit({ directory })).rejects.toMatchObject({ code: "DROVER-AUD-001" });
      const reader = await scratch.open(directory, { mode: "read" });
      expect(await reader.read.runs({}, { limit: 10 })).toHaveLength(2);
      await expect(reader.apply([])).rejects.toThrow("reading");
    });
  }
});

async function openUsedStore(options: { lockWaitMs?: number } = {}) {
  const directory = scratch.newDirectory();
  const store = await scratch.open(directory, options);
  await recordRuns(store, 2);
  return { directory, store };
}

async function createClosedStore(runs = 2, directory = scratch.newDirectory()) {
  const store = await scratch.open(directory);
  await recordRuns(store, runs);
  store.connection.exec("pragma wal_checkpoint(truncate)");
  await store.close();
  return { directory, file: join(directory, "drover.db") };
}

function lock(directory: string) {
  const db = openDatabase(join(directory, "drover.db"), {});
  db.exec("begin immediate");
  return db;
}

/** Readable by everyone, writable only by root. */
function makeReadOnly(directory: string): void {
  chmodSync(dirname(directory), 0o755);
  for (const name of readdirSync(directory))
    if (basename(name) !== "audit.key") chmodSync(join(directory, name), 0o444);
  chmodSync(directory, 0o555);
}

function overwrite(file: string, offset: number, bytes: Buffer): void {
  const fd = openSync(file, "r+");
  writeSync(fd, bytes, 0, bytes.length, offset);
  closeSync(fd);
}
