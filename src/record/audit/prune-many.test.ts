import { expect, it } from "vitest";
import { eachEngine, fromEndToEnd, captureQueries } from "../../../test/fixtures/record/each-engine.ts";
import { recordRuns } from "../../../test/fixtures/record/sample.ts";
import type { Engine } from "../engine.ts";
import { type Query, write } from "../query.ts";
import { pruneAudit } from "./prune.ts";

eachEngine("audit retention", (record) => {
  it("scans no whole table while others wait for the lock", async () => {
    const { store } = record;
    await recordRuns(store, 5);
    record.advance(1000);
    const before = record.now();
    await recordRuns(store, 2);
    const queries: Query[] = [];
    const engine: Engine = {
      ...store.engine,
      write: (work) => store.engine.write(() => captureQueries(work(), queries)),
    };
    expect(await pruneAudit({ ...store, engine }, before)).toEqual({ rows: 10 });
    expect(await record.rows("select count(*) as count from audit_rows")).toEqual([{ count: 5 }]);
    expect(queries.length).toBeGreaterThan(5);
    for (const { text, values } of queries.filter((query) => query.text.includes(" where ")))
      expect([text, await record.plan(text, ...values)]).toEqual([text, expect.not.stringMatching(fromEndToEnd)]);
  });

  it("finds and removes rows in batches", async () => {
    const { store } = record;
    const at = record.now().toISOString();
    const [numbers, mac] = [
      "with recursive n(i) as (select 1 union all select i + 1 from n where i < 2500)",
      Buffer.alloc(32),
    ];
    await store.engine.write(function* () {
      yield write(`${numbers} insert into audit_batches select i, i, 1, ?, ? from n`, at, mac);
      yield write(
        `${numbers} insert into audit_rows (no, batch_no, kind, at, body, mac) select i, i, 'fenced', ?, '{}', ? from n`,
        at,
        mac,
      );
    });
    record.advance(1000);
    let [reads, writes] = [0, 0];
    const engine: Engine = {
      ...store.engine,
      read: (work) => ((reads += 1), store.engine.read(work)),
      write: (work) => ((writes += 1), store.engine.write(work)),
    };
    expect(await pruneAudit({ ...store, engine }, record.now())).toEqual({ rows: 2500 });
    expect([reads, writes]).toEqual([5, 4]);
    expect(await record.rows("select kind, no from audit_rows")).toEqual([{ kind: "prune", no: 2501 }]);
    expect(await record.rows("select batch_no from audit_batches")).toEqual([{ batch_no: 2501 }]);
    expect(await record.rows("select last_no from audit_anchors")).toEqual([{ last_no: 2500 }]);
  });
});
