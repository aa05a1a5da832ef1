import { expect, test } from "vitest";
import { drive } from "../../../test/fixtures/dispatch/drive.ts";
import { standingClock } from "../../../test/fixtures/dispatch/host.ts";
import { create, ownDatabase, secret } from "../../../test/fixtures/record/postgres-stores.ts";
import { sampleId, sampleRun } from "../../../test/fixtures/record/sample.ts";
import type { RecordStore } from "../record-store.ts";
import { openPostgresStore } from "./open.ts";

const at = ownDatabase();

test("a lease is begun anew for who could not judge for long only where nobody else could either", async () => {
  const { now, advance } = standingClock();
  const [slow, other] = [
    await openPostgresStore({ url: at.url, secret, now }),
    await openPostgresStore({ url: at.url, secret, now }),
  ];
  at.afterwards(() => Promise.all([slow.close(), other.close()]));
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

test("a bad operation is its own caller's fault; the others of the same moment are stored", async () => {
  const store = await at.open();
  const bad = create(sampleRun({ run_id: sampleId(), status: "completed" }));
  const answers = await Promise.allSettled([store.apply([create()]), store.apply([bad]), store.apply([create()])]);
  expect(answers.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});
