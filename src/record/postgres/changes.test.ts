import { expect, test } from "vitest";
import { create, ownDatabase } from "../../../test/fixtures/record/postgres-stores.ts";
import { sampleId, sampleRun } from "../../../test/fixtures/record/sample.ts";
import type { Change } from "../../model/store.ts";
import { write } from "../query.ts";
import type { RecordStore } from "../record-store.ts";
import { createEmptyNotice, openChangeNotifier } from "./changes.ts";
import { connect } from "./connection.ts";

const database = ownDatabase();

/** Collects the changes from now on. The first change that a new store reports is that anything may have changed. */
async function collectChanges(store: RecordStore): Promise<Change[]> {
  const received: Change[] = [];
  store.changes((change) => received.push(change));
  await expect.poll(() => received.length).toBe(1);
  expect(received.splice(0)).toMatchObject([{ runs: null, fromOtherProcess: true }]);
  return received;
}

test("notifies other stores of a commit, with the names of what changed", async () => {
  const other = await database.open();
  const received = await collectChanges(other);
  const one = await database.open();
  const run = sampleRun({ run_id: sampleId() });
  await one.apply([create(run)]);
  await expect
    .poll(() => received)
    .toEqual([
      {
        runs: new Set([run.run_id]),
        claimable: [],
        resumed: [],
        runnersWithOrders: new Set(),
        fromOtherProcess: false,
      },
    ]);
});

test("delivers a broadcast to other stores, but not to its sender", async () => {
  const [one, other] = [await database.open(), await database.open()];
  const received: string[] = [];
  other.onBroadcast((text) => received.push(text));
  one.onBroadcast((text) => received.push(`again ${text}`));
  await expect.poll(() => (one.broadcast("hello \0 \ud800 ü"), received.length)).toBeGreaterThan(0);
  expect(new Set(received)).toEqual(new Set(["hello \0 \ud800 ü"]));
});

test("reports that anything may have changed when there are too many changes to list", async () => {
  const other = await database.open();
  const received = await collectChanges(other);
  const one = await database.open();
  await one.apply(Array.from({ length: 400 }, () => create()));
  await expect
    .poll(() => received)
    .toEqual([{ runs: null, claimable: [], resumed: [], runnersWithOrders: new Set(), fromOtherProcess: false }]);
});

test("orders cursors by commit even with several writers, so that a follower misses nothing", async () => {
  const stores = [await database.open(), await database.open(), await database.open()];
  const reader = await database.open();
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
      for (let count = 0; count < 60; count += 1) {
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

test("tolerates notifications of other programs on its channel", async () => {
  const store = await database.open();
  const received = await collectChanges(store);
  const other = await connect(database.url);
  database.afterwards(() => other.end());
  for (const text of ["not JSON", "5", "null", '{"no":"x"}', "{}"])
    for (const channel of ["drover", "drover_live"]) await other.exec(`select pg_notify('${channel}', '${text}')`);
  await expect.poll(() => received.filter(({ fromOtherProcess }) => fromOtherProcess).length).toBe(10);
  expect(await store.apply([create()])).toEqual([{ ok: true, last_n: 1 }]);
});

test("counts a commit without changes too", async () => {
  const [store, other] = [await database.open(), await database.open()];
  const received = await collectChanges(other);
  await store.apply([create()]);
  await store.engine.write(function* () {
    yield write("delete from idempotency");
  });
  await store.apply([create()]);
  await expect.poll(() => received.filter(({ runs }) => runs?.size === 1).length).toBe(2);
  expect(received.every(({ fromOtherProcess }) => !fromOtherProcess)).toBe(true);
});

test("notices lost notifications, even if it received none or was behind before", async () => {
  await (await database.open()).close();
  const faults: unknown[] = [];
  const changes = openChangeNotifier(database.url, "me", (fault) => faults.push(fault));
  database.afterwards(() => changes.stop());
  const received: Change[] = [];
  changes.listen((change) => received.push(change));
  await expect.poll(() => received.length).toBe(1);
  changes.compare(5);
  expect(received).toHaveLength(2);
  const other = await connect(database.url);
  database.afterwards(() => other.end());
  const notifyAndWait = async (no: number): Promise<void> => {
    const before = received.length;
    await other.exec(`select pg_notify('drover', '${createEmptyNotice("other", no)}')`);
    await expect.poll(() => received.length).toBe(before + 1);
  };
  changes.compare(6);
  await notifyAndWait(6);
  await notifyAndWait(7);
  // One more than was received, twice: the first time it may still be on its way.
  changes.compare(8);
  expect(faults).toEqual([]);
  changes.compare(8);
  await expect.poll(() => faults.map(String)).toEqual(["Error: notifications were lost"]);
});
