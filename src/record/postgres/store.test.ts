import { connect as connectTcp, createServer, type Server, type Socket } from "node:net";
import type { AddressInfo } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { drive } from "../../../test/fixtures/dispatch/drive.ts";
import { standingClock } from "../../../test/fixtures/dispatch/host.ts";
import { executionStarted, sampleId, sampleRun } from "../../../test/fixtures/record/sample.ts";
import { type FreshDatabase, freshDatabase } from "../../../test/postgres/fresh-database.ts";
import type { Change, CreateRun } from "../../model/store.ts";
import type { RecordStore } from "../record-store.ts";
import { write } from "../query.ts";
import { emptyNotice, openChanges } from "./changes.ts";
import { connect } from "./client.ts";
import { openLink } from "./link.ts";
import { openPostgresStore } from "./open.ts";
import { commit, lockForWriting, wasCommitted } from "./write-lock.ts";

const secret = Buffer.alloc(32, 7);
let database: FreshDatabase;
let cleanups: (() => unknown)[];
beforeEach(async () => {
  cleanups = [];
  database = await freshDatabase();
});
afterEach(async () => {
  for (const clean of cleanups.toReversed()) await clean();
  await database.drop();
});

async function open(url = database.url): Promise<RecordStore> {
  const store = await openPostgresStore({ url, secret });
  cleanups.push(() => store.close());
  return store;
}

const create = (run = sampleRun({ run_id: sampleId() })): CreateRun => ({
  op: "create_run",
  run,
  events: [{ n: 1, at: run.created_at, event: { type: "output", stream: "stdout", text: "x" } }],
});

test("several that open a new database at once make its schema once", async () => {
  const stores = await Promise.all(Array.from({ length: 6 }, () => open()));
  const ids = await Promise.all(stores.map((store) => store.storeId()));
  expect(new Set(ids).size).toBe(1);
});

test("a database that a newer Drover made is refused, and not changed", async () => {
  await (await open()).close();
  const client = await connect(database.url);
  cleanups.push(() => client.end());
  await client.exec("update schema_version set version = 99");
  await expect(openPostgresStore({ url: database.url, secret })).rejects.toMatchObject({ code: "DROVER-STA-005" });
  expect(await client.exec("select version from schema_version")).toEqual([{ version: 99 }]);
});

test("a database that cannot hold every text is refused", async () => {
  const name = `${new URL(database.url).pathname.slice(1)}_ascii`;
  const admin = await connect(database.url);
  cleanups.push(() => admin.end());
  await admin.exec(`create database ${name} encoding 'SQL_ASCII' locale 'C' template template0`);
  cleanups.push(() => admin.exec(`drop database ${name} with (force)`));
  const url = database.url.replace(/[^/]+$/, name);
  await expect(openPostgresStore({ url, secret })).rejects.toMatchObject({
    code: "DROVER-STA-006",
    message: expect.stringContaining("SQL_ASCII"),
  });
});

test.each([
  ["a server that is not there", "postgres://u:secret-word@127.0.0.1:1/none", "DROVER-STA-008"],
  ["a database that is not there", null, "DROVER-STA-006"],
])("%s is told by name, and the password is not", async (_what, url, code) => {
  const asked = url ?? database.url.replace(/[^/]+$/, "no_such_database");
  const fault: unknown = await openPostgresStore({ url: asked, secret }).catch((thrown: unknown) => thrown);
  expect(fault).toMatchObject({ code, field: "DATABASE_URL" });
  expect(String(fault)).not.toContain(new URL(asked).password);
});

test("a lease is begun anew for who could not judge for long only where nobody else could either", async () => {
  const { now, advance } = standingClock();
  const [slow, other] = [
    await openPostgresStore({ url: database.url, secret, now }),
    await openPostgresStore({ url: database.url, secret, now }),
  ];
  cleanups.push(() => Promise.all([slow.close(), other.close()]));
  const judge = async (store: RecordStore, last?: number) => {
    const [round] = await store.apply([
      {
        op: "rescue",
        unmatched_ms: 1e9,
        limit: 100,
        among_others: true,
        ...(last === undefined ? {} : { last: { at: last, lease_ms: 10_000 } }),
      },
    ]);
    if (!round.ok) throw new Error("rescue has no conflicts");
    return round;
  };
  const before = await judge(slow);
  await judge(other);
  // nobody could for a minute: the first who can begins them anew, the second finds that done
  await drive(slow, now).register("r");
  advance(60_000);
  expect(await judge(other, before.at)).toMatchObject({ lost_runners: [] });
  advance(4000);
  const last = await judge(slow, before.at);
  advance(4000);
  const meanwhile = await judge(other, last.at);
  advance(2001);
  // one could not for six seconds, but the other judged two seconds ago
  expect(await judge(slow, last.at)).toMatchObject({ lost_runners: ["r"] });
  expect(meanwhile.lost_runners).toEqual([]);
});

/** What it is told from here on; the first thing any store says is that it knows of nothing yet. */
async function listen(store: RecordStore): Promise<Change[]> {
  const heard: Change[] = [];
  store.changes((change) => heard.push(change));
  await expect.poll(() => heard.length).toBe(1);
  expect(heard.splice(0)).toMatchObject([{ runs: null, foreign: true }]);
  return heard;
}

test("a secret that is not the one of its chain is refused, before anything is sealed with it", async () => {
  const store = await open();
  const run = sampleRun({ run_id: sampleId() });
  const events = [{ n: 1, at: run.created_at, event: executionStarted(sampleId()) }];
  await store.apply([{ op: "create_run", run, events }]);
  await expect(openPostgresStore({ url: database.url, secret: Buffer.alloc(32, 8) })).rejects.toMatchObject({
    code: expect.stringMatching(/^DROVER-/),
    message: expect.stringContaining("secret"),
  });
  await (await open()).storeId();
});

test("what one store commits, another hears of by name", async () => {
  const other = await open();
  const heard = await listen(other);
  const one = await open();
  const run = sampleRun({ run_id: sampleId() });
  await one.apply([create(run)]);
  await expect
    .poll(() => heard)
    .toEqual([{ runs: new Set([run.run_id]), claimable: [], ordered: new Set(), foreign: false }]);
});

test("what is passed on reaches the others once, and is kept nowhere", async () => {
  const [one, other] = [await open(), await open()];
  const heard: string[] = [];
  other.othersTell((text) => heard.push(text));
  one.othersTell((text) => heard.push(`again ${text}`));
  await expect.poll(() => (one.tellOthers("hello \0 \ud800 ü"), heard.length)).toBeGreaterThan(0);
  expect(new Set(heard)).toEqual(new Set(["hello \0 \ud800 ü"]));
});

test("more changes than a notice can name are told as any", async () => {
  const other = await open();
  const heard = await listen(other);
  const one = await open();
  await one.apply(Array.from({ length: 400 }, () => create()));
  await expect.poll(() => heard).toEqual([{ runs: null, claimable: [], ordered: new Set(), foreign: false }]);
});

test("cursors are in the order of commits, whoever writes: a reader that follows misses nothing", async () => {
  const stores = [await open(), await open(), await open()];
  const reader = await open();
  const seen: number[] = [];
  let writing = true;
  const following = (async () => {
    for (let after = 0; ;) {
      const last = !writing;
      const page = await reader.read.feed(after, 1000);
      seen.push(...page.map(({ cursor }) => cursor));
      after = page.at(-1)?.cursor ?? after;
      if (last && page.length === 0) return;
    }
  })();
  await Promise.all(
    stores.map(async (store) => {
      for (let at = 0; at < 60; at += 1) {
        await store.apply([create()]);
      }
    }),
  );
  writing = false;
  await following;
  const all = (await reader.read.feed(0, 10_000)).map(({ cursor }) => cursor);
  expect(seen).toEqual(all);
  expect(all).toHaveLength(180);
});

interface Wire {
  url: string;
  /** From the next commit on nothing comes back; resolves when there was one. */
  swallowAnswers(): Promise<void>;
  /** The next commit does not arrive, and the connections break. */
  cutBeforeCommit(): void;
  /** Nothing of what the server says is fetched any more. */
  stall(): void;
  cut(): void;
}

/** Between a store and its database. */
async function wire(): Promise<Wire> {
  const to = new URL(database.url);
  const sockets = new Set<Socket>();
  let awaited: (() => void) | null = null;
  let swallows = false;
  let cutsBefore = false;
  const servers = new Set<Socket>();
  const server: Server = createServer((near) => {
    const far = connectTcp(Number(to.port), to.hostname);
    servers.add(far);
    for (const socket of [near, far]) sockets.add(socket.on("error", () => undefined));
    near.on("data", (bytes) => {
      if (cutsBefore && bytes.includes("commit\0")) {
        cutsBefore = false;
        return cut();
      }
      if (awaited !== null && bytes.includes("commit\0")) {
        swallows = true;
        awaited();
        awaited = null;
      }
      far.write(bytes);
    });
    far.on("data", (bytes) => swallows || near.write(bytes));
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const cut = (): void => {
    swallows = false;
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  cleanups.push(() => {
    cut();
    server.close();
  });
  const url = new URL(database.url);
  // a TCP server's address is never a string
  url.port = String((server.address() as AddressInfo).port);
  const swallowAnswers = (): Promise<void> => new Promise((resolve) => (awaited = resolve));
  const stall = (): void => {
    for (const far of servers) far.pause();
  };
  const cutBeforeCommit = (): void => void (cutsBefore = true);
  return { url: url.href, swallowAnswers, cutBeforeCommit, stall, cut };
}

test("a connection that breaks is made again, and what was asked for meanwhile is done once", async () => {
  const { url, cut } = await wire();
  const store = await open(url);
  const runs = Array.from({ length: 40 }, () => sampleRun({ run_id: sampleId() }));
  const asked = runs.map((run) => store.apply([create(run)]));
  cut();
  const answers = await Promise.all(asked);
  expect(answers).toEqual(runs.map(() => [{ ok: true, last_n: 1 }]));
  expect((await store.read.runs({}, { limit: 100 })).length).toBe(40);
});

test("a commit whose answer never came is looked up: it happened, and is not done again", async () => {
  const { url, swallowAnswers, cut } = await wire();
  const store = await open(url);
  await store.apply([create()]);
  const watcher = await connect(database.url);
  cleanups.push(() => watcher.end());
  const swallowed = swallowAnswers();
  const run = sampleRun({ run_id: sampleId() });
  const asked = store.apply([create(run)]);
  await swallowed;
  const stored = `select count(*) as n from runs where run_id = '${run.run_id}'`;
  await expect.poll(() => watcher.exec(stored)).toEqual([{ n: 1 }]);
  const [before] = await watcher.exec("select commits from store");
  cut();
  expect(await asked).toEqual([{ ok: true, last_n: 1 }]);
  expect(await watcher.exec("select commits from store")).toEqual([before]);
});

test("a commit that never arrived is made again, though its number is the same", async () => {
  const { url, cutBeforeCommit } = await wire();
  const store = await open(url);
  await store.apply([create()]);
  for (let round = 0; round < 3; round += 1) {
    cutBeforeCommit();
    const run = sampleRun({ run_id: sampleId() });
    expect(await store.apply([create(run)])).toEqual([{ ok: true, last_n: 1 }]);
    expect(await store.read.run(run.run_id)).toMatchObject({ run_id: run.run_id });
  }
});

test("a server that says nothing any more is taken to be gone", async () => {
  const { url, swallowAnswers } = await wire();
  await (await open()).close();
  const client = await connect(url, { answerMs: 300 });
  cleanups.push(() => client.end());
  void swallowAnswers();
  await client.exec("begin; commit").catch(() => undefined);
  await expect(client.exec("select 1")).rejects.toThrow();
  await expect.poll(() => client.broken).toBe(true);
});

test("one that hangs in the middle of a transaction holds up the others for seconds, not for ever", async () => {
  const store = await open();
  const hanging = await connect(database.url, { idleInTransactionMs: 500 });
  cleanups.push(() => hanging.end());
  await hanging.exec("begin; update store set commits = commits + 1");
  expect(await store.apply([create()])).toEqual([{ ok: true, last_n: 1 }]);
  expect(hanging.broken).toBe(true);
});

test("a connection that is left in the midst of statements is gone soon, on the server too", async () => {
  await (await open()).close();
  const [holding, watching] = [await connect(database.url), await connect(database.url)];
  cleanups.push(
    () => holding.end(),
    () => watching.end(),
  );
  await holding.exec("begin; lock table uploads in access exclusive mode");
  for (const statements of [1, 3]) {
    const left = await connect(database.url);
    const asked = Array.from({ length: statements }, () => left.exec("select * from uploads"));
    if (statements > 1) left.end();
    else await expect.poll(() => watching.exec(waitingForLocks)).toEqual([{ n: 1 }]);
    left.end();
    expect((await Promise.allSettled(asked)).map(({ status }) => status)).toEqual(asked.map(() => "rejected"));
  }
});

const waitingForLocks =
  "select count(*) as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()";

test("so does one that no longer fetches what the server has for it", async () => {
  const { url, stall } = await wire();
  const store = await open();
  const hanging = await connect(url, { idleInTransactionMs: 500 });
  cleanups.push(() => hanging.end());
  await hanging.exec("begin; update store set commits = commits + 1");
  stall();
  hanging.exec("select repeat('x', 100000000) as much").catch(() => undefined);
  expect(await store.apply([create()])).toEqual([{ ok: true, last_n: 1 }]);
});

test("a bad operation is its own caller's fault; the others of the same moment are stored", async () => {
  const store = await open();
  const bad = create(sampleRun({ run_id: sampleId(), status: "completed" }));
  const answers = await Promise.allSettled([store.apply([create()]), store.apply([bad]), store.apply([create()])]);
  expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("a connection that was refused is tried anew", async () => {
  const name = `${new URL(database.url).pathname.slice(1)}_later`;
  const link = openLink({ url: database.url.replace(/[^/]+$/, name), waitMs: 1000 });
  cleanups.push(() => link.close());
  const look = () => link.use((client) => client.exec("select 1 as one"));
  await expect(look()).rejects.toMatchObject({ code: "DROVER-STA-006" });
  const admin = await connect(database.url);
  cleanups.push(() => admin.end());
  await admin.exec(`create database ${name}`);
  cleanups.push(async () => {
    link.close();
    await admin.exec(`drop database ${name} with (force)`);
  });
  expect(await look()).toEqual([{ one: 1 }]);
});

test("what others say on our channel does no harm", async () => {
  const store = await open();
  const told = await listen(store);
  const other = await connect(database.url);
  cleanups.push(() => other.end());
  for (const text of ["not JSON", "5", "null", '{"no":"x"}', "{}"])
    for (const channel of ["drover", "drover_live"]) await other.exec(`select pg_notify('${channel}', '${text}')`);
  await expect.poll(() => told.filter(({ foreign }) => foreign).length).toBe(10);
  expect(await store.apply([create()])).toEqual([{ ok: true, last_n: 1 }]);
});

test("a commit that tells of nothing counts all the same", async () => {
  const [store, other] = [await open(), await open()];
  const told = await listen(other);
  await store.apply([create()]);
  await store.engine.write(function* () {
    yield write("delete from idempotency");
  });
  await store.apply([create()]);
  await expect.poll(() => told.filter(({ runs }) => runs?.size === 1).length).toBe(2);
  expect(told.every(({ foreign }) => !foreign)).toBe(true);
});

test("notices that do not come are missed, also by one that has heard none, or was behind before", async () => {
  await (await open()).close();
  const faults: unknown[] = [];
  const changes = openChanges(database.url, "me", (fault) => faults.push(fault));
  cleanups.push(() => changes.stop());
  const told: Change[] = [];
  changes.listen((change) => told.push(change));
  await expect.poll(() => told.length).toBe(1);
  changes.compare(5);
  expect(told).toHaveLength(2);
  const other = await connect(database.url);
  cleanups.push(() => other.end());
  const hear = async (no: number): Promise<void> => {
    const before = told.length;
    await other.exec(`select pg_notify('drover', '${emptyNotice("other", no)}')`);
    await expect.poll(() => told.length).toBe(before + 1);
  };
  changes.compare(6);
  await hear(6);
  await hear(7);
  // one more than was heard, twice: the first time it may still be on its way
  changes.compare(8);
  expect(faults).toEqual([]);
  changes.compare(8);
  await expect.poll(() => faults.map(String)).toEqual(["Error: notices went missing"]);
});

test("a column that a newer Drover adds does not disturb who is at work", async () => {
  const store = await open();
  expect(await store.read.token("none")).toBeNull();
  const newer = await connect(database.url);
  cleanups.push(() => newer.end());
  await newer.exec("alter table tokens add column added text; alter table runners add column added text");
  for (let at = 0; at < 4; at += 1) expect(await store.read.token("none")).toBeNull();
});

test("a commit is known by its mark: another that got its number, or its place, is another", async () => {
  await (await open()).close();
  const client = await connect(database.url);
  cleanups.push(() => client.end());
  const { no } = await lockForWriting(client, "ours");
  expect(await wasCommitted(client, no, "ours")).toBe(true);
  await client.exec("rollback");
  expect(await wasCommitted(client, no, "ours")).toBe(false);
  await lockForWriting(client, "theirs");
  await commit(client);
  expect(await wasCommitted(client, no, "ours")).toBe(false);
  expect(await wasCommitted(client, no, "theirs")).toBe(true);
  await client.exec("update turns set no = no + 65536");
  await expect(wasCommitted(client, no, "theirs")).rejects.toThrow("nobody knows");
});

test("what took longer than the patience before its connection broke is tried again all the same", async () => {
  const { url, cut } = await wire();
  const store = await openPostgresStore({ url, secret, waitMs: 300 });
  cleanups.push(() => store.close());
  const holder = await connect(database.url);
  cleanups.push(() => holder.end());
  await holder.exec("begin; update store set commits = commits");
  const asked = store.apply([create()]);
  const since = performance.now();
  await expect.poll(() => performance.now() - since, { timeout: 5000 }).toBeGreaterThan(600);
  cut();
  await holder.exec("rollback");
  expect(await asked).toEqual([{ ok: true, last_n: 1 }]);
});
