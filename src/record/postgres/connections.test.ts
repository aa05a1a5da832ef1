import { expect, test } from "vitest";
import { create, ownDatabase, secret } from "../../../test/fixtures/record/postgres-stores.ts";
import { sampleId, sampleRun } from "../../../test/fixtures/record/sample.ts";
import { openWire } from "../../../test/fixtures/record/wire.ts";
import { connect } from "./connection.ts";
import { openLink } from "./link.ts";
import { openPostgresStore } from "./open.ts";
import { commit, lockForWriting, wasCommitted } from "./write-lock.ts";

const database = ownDatabase();

test("reconnects after a broken connection and does what was requested during the outage exactly once", async () => {
  const { url, cut } = await openWire(database);
  const store = await database.open(url);
  const runs = Array.from({ length: 40 }, () => sampleRun({ run_id: sampleId() }));
  const pending = runs.map((run) => store.apply([create(run)]));
  cut();
  const answers = await Promise.all(pending);
  expect(answers).toEqual(runs.map(() => [{ ok: true, last_n: 1 }]));
  expect((await store.read.runs({}, { limit: 100 })).length).toBe(40);
});

test("does not repeat a commit whose acknowledgement was lost", async () => {
  const { url, swallowAnswers, cut } = await openWire(database);
  const store = await database.open(url);
  await store.apply([create()]);
  const watcher = await connect(database.url);
  database.afterwards(() => watcher.end());
  const swallowed = swallowAnswers();
  const run = sampleRun({ run_id: sampleId() });
  const pending = store.apply([create(run)]);
  await swallowed;
  const stored = `select count(*) as n from runs where run_id = '${run.run_id}'`;
  await expect.poll(() => watcher.exec(stored)).toEqual([{ n: 1 }]);
  const [before] = await watcher.exec("select commits from store");
  cut();
  expect(await pending).toEqual([{ ok: true, last_n: 1 }]);
  expect(await watcher.exec("select commits from store")).toEqual([before]);
});

test("repeats a commit that never arrived, although its number is the same", async () => {
  const { url, cutBeforeCommit } = await openWire(database);
  const store = await database.open(url);
  await store.apply([create()]);
  for (let round = 0; round < 3; round += 1) {
    cutBeforeCommit();
    const run = sampleRun({ run_id: sampleId() });
    expect(await store.apply([create(run)])).toEqual([{ ok: true, last_n: 1 }]);
    expect(await store.read.run(run.run_id)).toMatchObject({ run_id: run.run_id });
  }
});

test("treats an unresponsive server as gone", async () => {
  const { url, swallowAnswers } = await openWire(database);
  await (await database.open()).close();
  const client = await connect(url, { responseMs: 3000 });
  database.afterwards(() => client.end());
  void swallowAnswers();
  await client.exec("begin; commit").catch(() => undefined);
  await expect(client.exec("select 1")).rejects.toThrow();
  await expect.poll(() => client.broken).toBe(true);
});

test("a process that hangs in a transaction holds up the others for seconds, not forever", async () => {
  const store = await database.open();
  const hanging = await connect(database.url, { idleInTransactionMs: 500 });
  database.afterwards(() => hanging.end());
  await hanging.exec("begin; update store set commits = commits + 1");
  expect(await store.apply([create()])).toEqual([{ ok: true, last_n: 1 }]);
  expect(hanging.broken).toBe(true);
});

test("a connection that is closed in the middle of statements soon disappears from the server too", async () => {
  await (await database.open()).close();
  const [holding, watching] = [await connect(database.url), await connect(database.url)];
  database.afterwards(() => (holding.end(), watching.end()));
  await holding.exec("begin; lock table uploads in access exclusive mode");
  for (const statements of [1, 3]) {
    const abandoned = await connect(database.url);
    const pending = Array.from({ length: statements }, () => abandoned.exec("select * from uploads"));
    if (statements > 1) abandoned.end();
    else await expect.poll(() => watching.exec(waitingForLocks)).toEqual([{ n: 1 }]);
    abandoned.end();
    expect((await Promise.allSettled(pending)).map(({ status }) => status)).toEqual(pending.map(() => "rejected"));
  }
});

const waitingForLocks =
  "select count(*) as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";

test("a connection that no longer reads the server's responses soon disappears from the server too", async () => {
  const { url, stall } = await openWire(database);
  const store = await database.open();
  const hanging = await connect(url, { idleInTransactionMs: 500 });
  database.afterwards(() => hanging.end());
  await hanging.exec("begin; update store set commits = commits + 1");
  stall();
  hanging.exec("select repeat('x', 100000000) as much").catch(() => undefined);
  expect(await store.apply([create()])).toEqual([{ ok: true, last_n: 1 }]);
});

test("retries a refused connection", async () => {
  const name = `${new URL(database.url).pathname.slice(1)}_later`;
  const link = openLink({ url: database.url.replace(/[^/]+$/, name), outageWaitMs: 1000 });
  database.afterwards(() => link.close());
  const selectOne = () => link.use((client) => client.exec("select 1 as one"));
  await expect(selectOne()).rejects.toMatchObject({ code: "DROVER-STA-006" });
  const admin = await connect(database.url);
  database.afterwards(() => admin.end());
  await admin.exec(`create database ${name}`);
  database.afterwards(async () => {
    link.close();
    await admin.exec(`drop database ${name} with (force)`);
  });
  expect(await selectOne()).toEqual([{ one: 1 }]);
});

test("identifies a commit by its mark, not by its number or its slot", async () => {
  await (await database.open()).close();
  const client = await connect(database.url);
  database.afterwards(() => client.end());
  const { no } = await lockForWriting(client, "first");
  expect(await wasCommitted(client, no, "first")).toBe(true);
  await client.exec("rollback");
  expect(await wasCommitted(client, no, "first")).toBe(false);
  await lockForWriting(client, "second");
  await commit(client);
  expect(await wasCommitted(client, no, "first")).toBe(false);
  expect(await wasCommitted(client, no, "second")).toBe(true);
  await client.exec("update turns set no = no + 65536");
  await expect(wasCommitted(client, no, "second")).rejects.toThrow("too many commits have happened since");
});

test("retries work that took longer than the wait before its connection broke", async () => {
  const { url, cut } = await openWire(database);
  const store = await openPostgresStore({ url, secret, outageWaitMs: 300 });
  database.afterwards(() => store.close());
  const holder = await connect(database.url);
  database.afterwards(() => holder.end());
  await holder.exec("begin; update store set commits = commits");
  const pending = store.apply([create()]);
  const since = performance.now();
  await expect.poll(() => performance.now() - since).toBeGreaterThan(600);
  cut();
  await holder.exec("rollback");
  expect(await pending).toEqual([{ ok: true, last_n: 1 }]);
});
