import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { afterEach, beforeEach, expect, it } from "vitest";
import { drive, output } from "../../../test/fixtures/dispatch/drive.ts";
import { createManualClock } from "../../../test/fixtures/dispatch/host.ts";
import { dumpTables } from "../../../test/fixtures/record/dump.ts";
import { contents, fillEveryTable } from "../../../test/fixtures/record/every-table.ts";
import { fillRecord } from "../../../test/fixtures/record/fill.ts";
import { runWithFiles, hashBytes } from "../../../test/fixtures/record/files.ts";
import { recordRuns } from "../../../test/fixtures/record/sample.ts";
import { type FreshDatabase, freshDatabase } from "../../../test/postgres/fresh-database.ts";
import { runStatuses } from "../../model/states.ts";
import { readKey } from "../audit/key.ts";
import { verifyAudit } from "../audit/verify.ts";
import { backupRecord } from "../backup.ts";
import { openStore } from "../open.ts";
import { verifyPostgres } from "../postgres/audit.ts";
import { openPostgresStore } from "../postgres/open.ts";
import type { RecordStore } from "../record-store.ts";
import { restoreRecord } from "../restore.ts";
import { indexEvents } from "../search/index-events.ts";
import { migrateRecord } from "./migrate-record.ts";
import { tables } from "./tables.ts";

let root: string;
let directory: string;
let database: FreshDatabase;
const { now, advance } = createManualClock();
const open = (stateDirectory = directory) => openStore({ directory: stateDirectory, now, createIfMissing: true });
const readKeyOrEmpty = (stateDirectory: string): Uint8Array => readKey(stateDirectory) ?? new Uint8Array();

beforeEach(async () => {
  root = mkdtempSync(join(tmpdir(), "drover-copy-"));
  directory = join(root, "state");
  database = await freshDatabase();
});
afterEach(async () => {
  await database.drop();
  rmSync(root, { recursive: true, force: true });
});

it("copies a record to PostgreSQL and back unchanged, and either engine can continue it", async () => {
  const store = await open();
  await fillEveryTable(store, advance);
  await fillRecord(store, { runs: 100 });
  const read = await readAll(store);
  expect(read.unnamed).toBe("not named yet");
  await store.close();
  const before = dumpTables(directory);
  const empty = tables.filter(({ name }) => before[name]?.length === 0).map(({ name }) => name);
  expect(empty).toEqual([]);
  expect(new Set(before["runs"]?.map(({ status }) => status))).toEqual(new Set(runStatuses));

  const { copied, audit } = await migrateRecord({ directory, url: database.url, now: now() });
  expect(dumpTables(directory)).toEqual(before);
  expect(copied.rows).toEqual(Object.fromEntries(tables.map(({ name }) => [name, before[name]?.length])));
  expect(audit).toEqual(await verifyAudit({ directory }));
  expect(audit).toMatchObject({ ok: true, pruned: { rows: 60 } });

  const location = { url: database.url, secret: readKeyOrEmpty(directory) };
  const moved = await openPostgresStore({ ...location, now });
  expect(await readAll(moved)).toEqual(read);
  await moved.close();

  const file = join(root, "copy");
  expect(await backupRecord(location, file, now())).toEqual({ head: audit.head });
  const restored = await restoreRecord({ directory: join(root, "back") }, file, { now: now(), keepTokens: true });
  expect(restored).toEqual({ made_at: now().toISOString(), audit, revoked_tokens: null });
  expect(dumpTables(join(root, "back"))).toEqual(before);
  expect(readKeyOrEmpty(join(root, "back"))).toEqual(readKeyOrEmpty(directory));

  const fleetStore = await openPostgresStore({ ...location, now });
  const restoredStore = await open(join(root, "back"));
  expect(await readAll(restoredStore)).toEqual(read);
  const searchRecord = async (record: RecordStore) => {
    expect(await indexEvents(record.engine)).toBe("done");
    return record.read.search("do", {}, { limit: 100 });
  };
  const found = await searchRecord(fleetStore);
  expect(found.items.length).toBeGreaterThan(5);
  expect(await searchRecord(restoredStore)).toEqual(found);
  for (const record of [fleetStore, restoredStore]) await continueRecord(record);
  await Promise.all([fleetStore.close(), restoredStore.close()]);
  expect(await verifyPostgres(location, audit.head)).toMatchObject({ ok: true });
  expect(await verifyAudit({ directory: join(root, "back"), head: audit.head })).toMatchObject({ ok: true });
});

/** Returns everything that can be read from it, including the bytes of files. */
async function readAll({ read, blobs, storeId }: RecordStore) {
  const runs = await read.runs({}, { limit: 10_000 });
  const files = [];
  for (const { run_id } of runs)
    for (const file of await read.files(run_id)) {
      const stream = (await blobs.open(file.sha256))?.stream;
      files.push({ ...file, whole: stream !== undefined && hashBytes(await buffer(stream)) === file.sha256 });
    }
  expect(files.every(({ whole }) => whole)).toBe(true);
  expect(files.map(({ size }) => size)).toEqual(expect.arrayContaining(contents.map(({ length }) => length)));
  return {
    id: await storeId(),
    runs: await Promise.all(runs.map(({ run_id }) => read.run(run_id))),
    feed: await read.feed(0, 100_000),
    executions: await read.executions({}, { limit: 10_000 }),
    runners: await read.runners(),
    agents: (await read.agent_page({ limit: 10_000 })).items,
    sessions: await read.sessions({}, { limit: 10_000 }),
    versions: await read.versions("f1"),
    tokens: await read.tokens({ limit: 100 }),
    // Uploaded by a run that is still active.
    unnamed: String(await buffer((await blobs.open(hashBytes(Buffer.from("not named yet"))))!.stream)),
    files,
  };
}

/** Adds runs, sessions and files, and ends what was running. */
async function continueRecord(store: RecordStore): Promise<void> {
  const driver = drive(store, now);
  await recordRuns(store, 3);
  await runWithFiles(store, [Buffer.from("new"), contents[0]!]);
  const runner = { runner_id: "holder", epoch: (await store.read.runner("holder"))?.epoch ?? 0 };
  const running = await store.read.runs({ status: ["running"] }, { limit: 1000 });
  const held = running.find(({ runner_id }) => runner_id === "holder")?.run_id ?? "";
  expect(await driver.append(runner, held, 1, 2, output("further"))).toMatchObject({ ok: true, last_n: 2 });
  expect(await driver.finish(runner, held, 1, { last_n: 2 })).toMatchObject({ ok: true });
  expect(await driver.submit({ demands: { hostname: "held" } })).toEqual((await driver.claim(runner, 1))[0]);
  await store.apply([
    { op: "put_agent", agent: (await store.read.agent_page({ limit: 1 })).items[0]!.agent, by: "me" },
  ]);
}
