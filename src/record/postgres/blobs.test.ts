import { randomBytes } from "node:crypto";
import { buffer } from "node:stream/consumers";
import { Readable } from "node:stream";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fromEndToEnd, captureQueries } from "../../../test/fixtures/record/each-engine.ts";
import { runWithFiles, hashBytes } from "../../../test/fixtures/record/files.ts";
import { type FreshDatabase, freshDatabase } from "../../../test/postgres/fresh-database.ts";
import { all, type Query } from "../query.ts";
import type { RecordStore } from "../record-store.ts";
import { partSize, prunePostgresBlobs } from "./blobs.ts";
import { type Connection, connect } from "./connection.ts";
import { openPostgresEngine } from "./engine.ts";
import { openPostgresStore } from "./open.ts";

let database: FreshDatabase;
let store: RecordStore;
let client: Connection;
beforeEach(async () => {
  database = await freshDatabase();
  store = await openPostgresStore({ url: database.url, secret: Buffer.alloc(32, 7) });
  client = await connect(database.url);
});
afterEach(async () => {
  client.end();
  await store.close();
  await database.drop();
});
const put = (bytes: Buffer) =>
  store.blobs.put(
    Readable.from([bytes.subarray(0, partSize), bytes.subarray(partSize)]),
    { sha256: hashBytes(bytes), size: bytes.length },
    new AbortController().signal,
  );
const makeOld = (table: string, where = "true") =>
  client.exec(`update ${table} set stored_at = stored_at - 7200000 where ${where}`);
const count = async (table: string) =>
  Number((await client.exec(`select count(*) as count from ${table}`))[0]?.["count"]);
const prune = () => store.pruneBlobs(new Date());

it("removes unreferenced contents after an hour, and partial uploads", async () => {
  const [used, unused, recent] = [randomBytes(10), randomBytes(partSize + 1), randomBytes(10)];
  await runWithFiles(store, [used]);
  await put(unused);
  await client.exec(
    "insert into blob_parts (upload_id, part, stored_at, bytes) values ('left', 0, 0, ''), ('left', 1, 5, '')",
  );
  await makeOld("blobs");
  await makeOld("blob_parts");
  await put(recent);
  expect(await prune()).toEqual({ blobs: 1 });
  const opened = await Promise.all([used, unused, recent].map((bytes) => store.blobs.open(hashBytes(bytes))));
  expect(opened.map((blob) => blob?.size)).toEqual([10, undefined, 10]);
  expect(await count("blob_parts")).toBe(2);
});

it("keeps a slow upload whose first parts are old but whose last part is recent", async () => {
  const now = "floor(extract(epoch from clock_timestamp()) * 1000)";
  await client.exec(
    `insert into blob_parts (upload_id, part, stored_at, bytes) values ('slow', 0, 0, ''), ('slow', 1, ${now}, '')`,
  );
  await prune();
  expect(await count("blob_parts")).toBe(2);
});

it("keeps contents that are uploaded again while they are about to be removed", async () => {
  const bytes = randomBytes(10);
  await put(bytes);
  await makeOld("blobs");
  await makeOld("blob_parts");
  await client.exec("begin; update blobs set stored_at = stored_at + 7200000");
  const pruned = prune();
  const watcher = await connect(database.url);
  const waiting = "select pid from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
  await expect.poll(() => watcher.exec(waiting)).toHaveLength(1);
  watcher.end();
  await client.exec("commit");
  expect(await pruned).toEqual({ blobs: 0 });
  const renewed = await store.blobs.open(hashBytes(bytes));
  expect(await buffer(renewed!.stream)).toEqual(bytes);
});

it("fails if contents end before their announced size", async () => {
  const bytes = randomBytes(partSize + 5);
  await put(bytes);
  for (const part of [1, 0]) {
    const opened = await store.blobs.open(hashBytes(bytes));
    expect(opened?.size).toBe(bytes.length);
    await client.exec(`delete from blob_parts where part = ${part}`);
    await expect(buffer(opened!.stream)).rejects.toThrow(expect.objectContaining({ code: "DROVER-STA-004" }));
  }
});

it("judges age by the database's clock, whatever a coordinator's clock says", async () => {
  const bytes = randomBytes(10);
  await put(bytes);
  expect(await store.pruneBlobs(new Date(Date.now() + 100 * 86_400_000))).toEqual({ blobs: 0 });
  await makeOld("blobs");
  expect(await store.pruneBlobs(new Date(0))).toEqual({ blobs: 1 });
});

it("scans no whole table while others wait for the lock", async () => {
  await put(randomBytes(10));
  await makeOld("blobs");
  await client.exec("insert into blob_parts (upload_id, part, stored_at, bytes) values ('left', 0, 0, '')");
  const engine = openPostgresEngine(database.url, 5000);
  const queries: Query[] = [];
  try {
    const write: typeof engine.write = (work) => engine.write(() => captureQueries(work(), queries));
    expect(await prunePostgresBlobs({ ...engine, write }, null)).toEqual({ blobs: 1 });
  } finally {
    engine.close();
  }
  expect(queries.length).toBeGreaterThan(2);
  await client.exec("set enable_seqscan = off; set enable_bitmapscan = off");
  for (const { text, values } of queries) {
    const plan = (await client.query(all(`explain ${text}`, ...values))).map((row) => row["QUERY PLAN"]).join("\n");
    expect([text, plan]).toEqual([text, expect.not.stringMatching(fromEndToEnd)]);
  }
});
