import { expect, it } from "vitest";
import { eachEngine, fromEndToEnd, captureQueries } from "../../../test/fixtures/record/each-engine.ts";
import { buildFinish, numbered, sampleRun } from "../../../test/fixtures/record/sample.ts";
import type { Engine } from "../engine.ts";
import { type Query, write } from "../query.ts";
import { pruneEvents, pruneRuns } from "../retention.ts";
import { indexEvents, indexIsBehind } from "./index-events.ts";
import { keepIndexed } from "./keep-indexed.ts";
import { search } from "./search.ts";

eachEngine("the search index", (record) => {
  const page = { limit: 50 };
  const tool = { type: "tool_use", tool_use_id: "t", name: "shell", input: "otter" } as const;
  const addRun = async (prompt: string): Promise<string> => {
    const run = sampleRun({ prompt });
    await record.store.apply([
      { op: "create_run", run, events: numbered(run.run_id, 1, tool) },
      buildFinish(run.run_id, [], { result_text: `${prompt} done` }),
    ]);
    return run.run_id;
  };
  const findRuns = async (text: string): Promise<string[]> =>
    (await record.store.read.search(text, {}, page)).items.map(({ run_id }) => run_id);
  const countDocuments = async (): Promise<number> => {
    const [row] = await record.rows("select count(*) as documents from run_search");
    return Number(row?.["documents"]);
  };

  it("costs a run no statement until somebody searches", async () => {
    await addRun("badger");
    expect(await indexIsBehind(record.store.engine)).toBe(true);
    const [row] = await record.rows("select indexed_to from store");
    expect(row).toEqual({ indexed_to: 0 });
  });

  it("indexes an older record in batches, and reports that meanwhile", async () => {
    const { engine } = record.store;
    for (let i = 0; i < 150; i += 1) await addRun(`badger ${i}`);
    expect(await indexEvents(engine, 1)).toBe("behind");
    const early = await search(engine, false, "badger", {}, page);
    expect(early.indexing).toBe(true);
    expect(early.items.length).toBeGreaterThan(0);
    expect((await search(engine, false, "badger 149", {}, page)).items).toEqual([]);
    expect(await indexEvents(engine)).toBe("done");
    expect(await search(engine, false, '"badger 149"', {}, page)).toMatchObject({ indexing: false, items: [{}] });
    expect(await countDocuments()).toBe(300);
  });

  it("is the same whether one process indexes a batch or two at once", async () => {
    const { engine } = record.store;
    for (let i = 0; i < 120; i += 1) await addRun(`badger ${i}`);
    await Promise.all([indexEvents(engine), indexEvents(engine), indexEvents(engine)]);
    expect(await countDocuments()).toBe(240);
  });

  it("removes a run with the run, and its tool input with its log", async () => {
    const { store, now } = record;
    const run_id = await addRun("badger");
    await addRun("newest, whose cursor must stay");
    expect(await findRuns("badger")).toEqual([run_id]);
    expect(await findRuns("otter")).toHaveLength(2);
    await pruneEvents(store, now());
    expect(await findRuns("otter")).toEqual([]);
    expect(await findRuns("badger")).toEqual([run_id]);
    await pruneRuns(store, now());
    expect(await findRuns("badger")).toEqual([]);
    expect(await countDocuments()).toBe(1);
  });

  it("lets retention work if nothing was ever indexed", async () => {
    await addRun("badger");
    await addRun("newest");
    expect(await pruneRuns(record.store, record.now())).toEqual({ runs: 1 });
    expect(await findRuns("badger")).toEqual([]);
    expect(await findRuns("newest")).toHaveLength(1);
  });

  it("is updated while a coordinator is open, and no longer after it stops", async () => {
    const { store } = record;
    const faults: unknown[] = [];
    const stop = keepIndexed(store, (fault) => faults.push(fault));
    await addRun("badger");
    await expect.poll(() => indexIsBehind(store.engine), { timeout: 30_000 }).toBe(false);
    await addRun("later");
    await expect.poll(() => indexIsBehind(store.engine), { timeout: 30_000 }).toBe(false);
    await stop();
    expect(faults).toEqual([]);
  });

  it("finds words and events by an index, and scans no whole table", async () => {
    const { store } = record;
    await addRun("badger");
    const queries: Query[] = [];
    const engine: Engine = {
      ...store.engine,
      read: (work) => store.engine.read(() => captureQueries(work(), queries)),
    };
    await search(engine, true, "badger", { created_by: "someone" }, page);
    // store and demands have one row each, which PostgreSQL reads completely.
    const relevantQueries = queries.filter(
      ({ text }) => /from (runs|events)\b/.test(text) && !/from store|join demands/.test(text),
    );
    expect(relevantQueries.length).toBeGreaterThan(2);
    for (const { text, values } of relevantQueries)
      expect(await record.plan(text, ...values), text).not.toMatch(fromEndToEnd);
  });

  it("stores no text, only words", async () => {
    if (record.store.engine.kind !== "sqlite") return;
    await addRun("badger");
    await findRuns("badger");
    const names = await record.rows("select name from sqlite_master where name like 'run_search%' order by name");
    expect(names.map(({ name }) => name)).not.toContain("run_search_content");
  });

  it("says what to do if this SQLite cannot search, and everything else works", async () => {
    const { store } = record;
    await addRun("badger");
    const engine: Engine = {
      ...store.engine,
      search: { ...store.engine.search, available: "select 1 as yes from store where 1 = 0" },
    };
    await expect(search(engine, true, "badger", {}, page)).rejects.toMatchObject({ code: "DROVER-STA-007" });
    const faults: unknown[] = [];
    const stop = keepIndexed({ ...store, engine }, (fault) => faults.push(fault));
    await stop();
    expect(faults).toEqual([]);
  });

  it("does not index a run that retention removed meanwhile", async () => {
    const { store } = record;
    await addRun("badger");
    await addRun("newest");
    const engine: Engine = {
      ...store.engine,
      async write(work) {
        await store.engine.write(function* () {
          yield write("delete from runs where run_no = 1");
        });
        return store.engine.write(work);
      },
    };
    await indexEvents(engine);
    expect(await findRuns("badger")).toEqual([]);
    expect(await countDocuments()).toBe(2);
  });
});
