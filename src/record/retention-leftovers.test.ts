import { expect, it } from "vitest";
import { createAgent } from "../../test/fixtures/dispatch/drive.ts";
import { eachEngine, type EachRecord, fromEndToEnd, captureQueries } from "../../test/fixtures/record/each-engine.ts";
import { recordRuns } from "../../test/fixtures/record/sample.ts";
import type { Engine } from "./engine.ts";
import type { Query } from "./query.ts";
import { pruneDispatch } from "./retention-dispatch.ts";
import { pruneAgentRevs } from "./retention-leftovers.ts";
import { pruneRuns } from "./retention.ts";

const minute = 60_000;

eachEngine("data that only removed runs used", (record) => {
  it("is removed with them: demands, their matches, and agent revisions", async () => {
    const { driver, store } = record;
    await driver.register("a", { tags: ["x", "y"] });
    const [x, y] = [{ tags: ["x"] }, { tags: ["y"] }];
    await driver.submit({ demands: x }, createAgent("one"));
    await driver.submit({ demands: y }, createAgent("two"));
    await driver.submit({}, createAgent("three"));
    await finishAll(record);
    record.advance(minute);
    const before = record.now();
    const kept = await driver.submit({ demands: y }, createAgent("two"));
    await recordRuns(store, 1);
    expect(await listDemands(record)).toEqual(["{}", '{"tags":["x"]}', '{"tags":["y"]}']);
    expect(await pruneDispatch(store, before)).toMatchObject({ runs: 3 });
    expect(await listDemands(record)).toEqual(["{}", '{"tags":["y"]}']);
    expect(await listAgents(record)).toEqual(["two"]);
    expect(
      await record.rows("select demand_id from demand_matches where demand_id not in (select demand_id from demands)"),
    ).toEqual([]);
    expect((await store.read.run(kept))?.demands).toEqual(y);
    // Requested again, they work as before.
    const resubmitted = await driver.submit({ demands: x }, createAgent("one"));
    expect((await driver.claim(await driver.register("a", { tags: ["x", "y"] }), 5)).toSorted()).toEqual(
      [kept, resubmitted].toSorted(),
    );
  });

  it("stays if a new run needs it meanwhile", async () => {
    const { driver, store } = record;
    await driver.submit({}, createAgent("one"));
    await finishAll(record);
    record.advance(minute);
    const before = record.now();
    await driver.submit({}, createAgent("two"));
    await recordRuns(store, 1);
    expect(await pruneRuns(store, before)).toEqual({ runs: 1 });
    let submittedMeanwhile = "";
    const engine: Engine = {
      ...store.engine,
      async write(work) {
        submittedMeanwhile = await driver.submit({}, createAgent("one"));
        return store.engine.write(work);
      },
    };
    expect(await pruneAgentRevs(engine)).toBe(0);
    expect(await listAgents(record)).toEqual(["one", "two"]);
    const { claims } = await driver.poll(await driver.register("b"), 5);
    expect(claims.map(({ run_id, invocation }) => [run_id, invocation.agent.name])).toContainEqual([
      submittedMeanwhile,
      "one",
    ]);
  });

  it("is found without the lock, and no whole table is scanned under it", async () => {
    const { driver, store } = record;
    await driver.submit({ demands: { tags: ["x"] } }, createAgent("one"));
    await finishAll(record);
    record.advance(minute);
    const before = record.now();
    await driver.submit({}, createAgent("two"));
    await recordRuns(store, 1);
    const queries: Query[] = [];
    const engine: Engine = {
      ...store.engine,
      write: (work) => store.engine.write(() => captureQueries(work(), queries)),
    };
    await pruneDispatch({ ...store, engine }, before);
    const relevantQueries = queries.filter(({ text }) => /agent_revs|demand/.test(text));
    expect(relevantQueries.length).toBeGreaterThan(1);
    for (const { text, values } of relevantQueries)
      expect([text, await record.plan(text, ...values)]).toEqual([text, expect.not.stringMatching(fromEndToEnd)]);
  });

  it("is left for the next time if the newest run was removed meanwhile, because its number may be reused", async () => {
    const { driver, store } = record;
    await driver.submit({}, createAgent("one"));
    await store.engine.write(function* () {
      yield {
        text: "insert into agent_revs (hash, max_attempts, type, body) values (?, 1, '', '{}')",
        values: [Buffer.from("h")],
        returns: "none",
      };
    });
    const engine: Engine = {
      ...store.engine,
      async write(work) {
        await store.engine.write(function* () {
          yield { text: "delete from runs", values: [], returns: "none" };
        });
        return store.engine.write(work);
      },
    };
    expect(await pruneAgentRevs(engine)).toBe(0);
    expect(await pruneAgentRevs(store.engine)).toBe(2);
  });
});

const listDemands = async ({ rows }: EachRecord) =>
  (await rows("select key from demands order by demand_id")).map(({ key }) => key);
const listAgents = async ({ rows }: EachRecord) =>
  (await rows("select body from agent_revs")).map(({ body }) => JSON.parse(String(body)).name).toSorted();

async function finishAll({ driver }: EachRecord): Promise<void> {
  const runner = await driver.register("a", { tags: ["x", "y"] });
  for (const run_id of await driver.claim(runner, 50)) await driver.finish(runner, run_id, 1);
}
