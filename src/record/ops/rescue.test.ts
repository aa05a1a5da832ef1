import { expect, it } from "vitest";
import { createAgent } from "../../../test/fixtures/dispatch/drive.ts";
import { eachEngine, type EachRecord, captureQueries } from "../../../test/fixtures/record/each-engine.ts";
import type { Query } from "../query.ts";
import { rescue } from "./rescue.ts";

const op = { op: "rescue", unmatched_ms: 300_000, limit: 500 } as const;

eachEngine("rescue", (record) => {
  it("needs no more queries for many lost runners than for one, and finds their runs by index", async () => {
    await loseRunners(record, 1);
    const fewQueries = await recordQueries(record);
    await loseRunners(record, 30);
    const manyQueries = await recordQueries(record);
    expect(manyQueries.length).toBe(fewQueries.length);
    const heldQuery = manyQueries.find(({ text }) => text.includes("runs_by_runner"));
    const plan = await record.plan(heldQuery?.text ?? "no such statement", ...(heldQuery?.values ?? []));
    expect(plan).toMatch(/runners_lost[^]*runs_by_runner/);
    expect(plan).not.toMatch(/Seq Scan|SCAN runs/);
  });

  it("releases the runs of many lost runners in rounds, each exactly once", async () => {
    const { driver, store } = record;
    const runs: string[] = [];
    for (const name of ["a", "b", "c"]) {
      const runner = await driver.register(name);
      for (let i = 0; i < 3; i += 1) runs.push(await driver.submit({}, createAgent("often", { max_attempts: 2 })));
      await driver.claim(runner, 3);
    }
    record.advance(10_001);
    const rounds: string[][] = [];
    for (let more = true; more;) {
      const [round] = await store.apply([{ ...op, limit: 4 }]);
      if (!round.ok) throw new Error("rescue has no conflicts");
      rounds.push(round.requeued);
      more = round.more;
    }
    expect(rounds.map(({ length }) => length)).toEqual([4, 4, 1]);
    expect(new Set(rounds.flat())).toEqual(new Set(runs));
    const [first] = await store.read.events(runs.at(-1)!, 2, 10);
    expect(first?.event).toMatchObject({ status: "pending", reason: "Its runner c was lost." });
  });

  it("takes few queries for each run that it releases", async () => {
    const { driver } = record;
    await loseRunners(record, 1);
    const before = (await recordQueries(record)).length;
    const runner = await driver.register("r");
    for (let i = 0; i < 10; i += 1) await driver.submit({ session_id: `s${i}` });
    await driver.claim(runner, 10);
    record.advance(10_001);
    const queries = await recordQueries(record);
    const awaitedQueries = queries.filter(({ returns }) => returns !== "none");
    expect(awaitedQueries.length - before).toBeLessThanOrEqual(10);
  });
});

async function loseRunners({ driver, store, advance }: EachRecord, count: number): Promise<void> {
  for (let i = 0; i < count; i += 1) await driver.register(`lost ${count} ${i}`);
  advance(10_001);
  await store.apply([op]);
}

/** Records the queries of one more rescue. */
async function recordQueries({ store, now }: EachRecord): Promise<Query[]> {
  const queries: Query[] = [];
  const tx = {
    now: now(),
    audit: [],
    changes: { runs: new Set<string>(), claimable: [], runnersWithOrders: new Set<string>() },
  };
  await store.engine.write(() => captureQueries(rescue(tx, op), queries));
  return queries;
}
