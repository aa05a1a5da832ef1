import { expect, it } from "vitest";
import { eachEngine, fromEndToEnd, captureQueries } from "../../../test/fixtures/record/each-engine.ts";
import type { Engine } from "../engine.ts";
import type { Query, Work } from "../query.ts";
import { write } from "../query.ts";
import { pruneCounts } from "../retention-counts.ts";
import { readStats } from "./stats.ts";

const columns = `
  run_id, agent_name, created_by, mode, status, attended, trigger_type, demand_id, priority, attempt, failures, last_n,
  last_seq, created_at, finished_at`;
/** Inserts any number of ended runs. */
const manyRuns = `
  with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?1)
  insert into runs (${columns})
  select '01990000-0000-7000-8000-' || substr('000000000000' || n, -12), 'echo', 'ann', 'start', ?2, 0, 'api', 1, 0, 1, 0, 0,
    1, '2026-03-01T10:00:00.000Z', '2026-03-01T10:00:00.000Z' from numbers`;

function* insertMany(count: number, engine: Engine): Work<void> {
  const text =
    engine.kind === "sqlite"
      ? manyRuns
      : manyRuns.replace("substr('000000000000' || n, -12)", "lpad(n::text, 12, '0')");
  yield write(text.replace("?1", String(count)).replace("?2", "'completed'"));
}

eachEngine("statistics", (record) => {
  it("scans no whole table and no ended runs", async () => {
    const { driver, store, now } = record;
    await store.engine.write(() => insertMany(20_000, store.engine));
    await driver.register("r");
    await driver.submit({ created_by: "ann" });
    const queries: Query[] = [];
    const engine: Engine = {
      ...store.engine,
      read: (work) => store.engine.read(() => captureQueries(work(), queries)),
    };
    const until = now().toISOString();
    const since = new Date(now().getTime() - 90 * 86_400_000).toISOString();
    for (const created_by of ["ann", "bob"]) await readStats(engine, { since, until, created_by });
    expect(await readStats(engine, { since, until })).toMatchObject({ now: { pending: 1 } });
    // There are few runners, and they are always read completely.
    const relevantQueries = queries.filter(
      ({ text }) => /from (runs|run_counts|usage_days|demands)\b/.test(text) && !/runners/.test(text),
    );
    expect(relevantQueries.length).toBeGreaterThan(10);
    for (const { text, values } of relevantQueries) {
      const plan = await record.plan(text, ...values);
      expect(plan, text).not.toMatch(fromEndToEnd);
      if (/from runs\b/.test(text))
        expect(plan, text).toMatch(/runs_by_status|runs_busy_by_agent|runs_pkey|INTEGER PRIMARY KEY/);
    }
  });

  it("counts each run once, even if there are more than fit into one batch", async () => {
    const { store, now } = record;
    await store.engine.write(() => insertMany(12_345, store.engine));
    await store.engine.write(function* () {
      yield write("update runs set status = 'pending', finished_at = null");
    });
    const span = { since: now().toISOString(), until: now().toISOString() };
    expect(await store.read.stats(span)).toMatchObject({
      now: { pending: 12_345, running: 0 },
      waiting: [{ reason: "agent", count: 12_345 }],
    });
    expect(await store.read.stats({ ...span, created_by: "bob" })).toMatchObject({ now: { pending: 0 }, waiting: [] });
  });
});

eachEngine("counts of ended runs", (record) => {
  it("are removed once no statistics reach them, and not before", async () => {
    const { driver, store, now, advance } = record;
    const runner = await driver.register("r");
    const run_id = await driver.submit();
    await driver.claim(runner);
    await driver.finish(runner, run_id, 1);
    const readCounts = () => record.rows("select runs from run_counts");
    advance(90 * 86_400_000);
    await pruneCounts(store.engine, now());
    expect(await readCounts()).toEqual([{ runs: 1 }]);
    advance(2 * 86_400_000);
    await pruneCounts(store.engine, now());
    expect(await readCounts()).toEqual([]);
  });
});
