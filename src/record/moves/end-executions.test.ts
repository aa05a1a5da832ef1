import { expect, it } from "vitest";
import { createAgent } from "../../../test/fixtures/dispatch/drive.ts";
import { eachEngine, type EachRecord } from "../../../test/fixtures/record/each-engine.ts";
import { executionEnded, executionStarted, recordRuns, sampleId } from "../../../test/fixtures/record/sample.ts";
import { pruneAudit } from "../audit/prune.ts";

const rescue = { op: "rescue", unmatched_ms: 300_000, limit: 100 } as const;
const day = 86_400_000;

eachEngine("the executions of an attempt that is over", (record) => {
  it("are ended as interrupted when the runner is lost, and audit retention continues", async () => {
    const { driver, store } = record;
    const { run_id, execution_id, runner } = await startRun(record);
    record.advance(10_001);
    expect(await store.apply([rescue])).toMatchObject([{ failed: [run_id] }]);
    expect(await store.read.execution(execution_id)).toMatchObject({
      attempt: 1,
      end: { interrupted: true, success: false, exit_code: null, duration_ms: null },
    });
    expect(await store.read.executions({ open: true }, { limit: 10 })).toEqual([]);
    const types = (await store.read.events(run_id, 0, 100)).map(({ event }) => event.type);
    expect(types.slice(-2)).toEqual(["execution_ended", "result"]);
    // Later reports of the runner are refused and audited.
    expect(await driver.append(runner, run_id, 1, 2, executionEnded(execution_id))).toMatchObject({ ok: false });
    record.advance(400 * day);
    await recordRuns(store, 1);
    expect(await pruneAudit(store, new Date(record.now().getTime() - 365 * day))).toEqual({ rows: 3 });
  });

  it("are ended when the run is taken back, given back or stopped", async () => {
    const { driver, store } = record;
    const lost = await startRun(record, "a");
    await store.apply([{ op: "leave_runner", ...lost.runner }]);
    const forgotten = await startRun(record, "b");
    await driver.beat(await driver.register("b"), [], null);
    const givenBack = await startRun(record, "c");
    await driver.finish(givenBack.runner, givenBack.run_id, 1, { give_back: "at_no_cost" });
    const stopped = await startRun(record, "d");
    await store.apply([{ op: "stop_runs", run_ids: [stopped.run_id], reason: "user", by: "ann" }]);
    await store.apply([{ op: "leave_runner", ...stopped.runner }]);
    for (const { execution_id } of [lost, forgotten, givenBack, stopped])
      expect((await store.read.execution(execution_id))?.end).toMatchObject({ interrupted: true });
    expect(await driver.statuses(...[lost, forgotten, givenBack, stopped].map(({ run_id }) => run_id))).toEqual([
      "pending",
      "failed",
      "pending",
      "cancelled",
    ]);
  });

  it("are ended even if they started in the same transaction, and never twice", async () => {
    const { driver, store } = record;
    const run_id = await driver.submit({}, createAgent("often", { max_attempts: 2 }));
    const runner = await driver.register("r");
    await driver.claim(runner);
    const [open, ended] = [sampleId(), sampleId()];
    record.advance(10_001);
    const at = record.now().toISOString();
    const events = [executionStarted(open), executionStarted(ended), executionEnded(ended)].map((event, index) => ({
      n: index + 1,
      at,
      event,
    }));
    await store.apply([{ op: "append_events", run_id, attempt: 1, runner, events }, rescue]);
    expect((await store.read.execution(open))?.end).toMatchObject({ interrupted: true });
    expect((await store.read.execution(ended))?.end).toMatchObject({ interrupted: false });
    expect(await record.rows("select kind from audit_rows order by no")).toEqual(
      ["start", "start", "end", "end"].map((kind) => ({ kind })),
    );
  });

  it("delay audit retention only while the attempt is running", async () => {
    const { driver, store } = record;
    const { run_id, execution_id, runner } = await startRun(record);
    const before = () => new Date(record.now().getTime() - 365 * day);
    record.advance(400 * day);
    expect(await pruneAudit(store, before())).toEqual({ rows: 0 });
    // The runner ends the run without reporting the end of the execution.
    expect(await driver.finish(runner, run_id, 1)).toMatchObject({ ok: true });
    expect(await store.read.execution(execution_id)).toMatchObject({ end: null });
    expect(await pruneAudit(store, before())).toEqual({ rows: 1 });
    expect(await record.rows("select * from open_executions")).toEqual([]);
  });
});

async function startRun({ driver }: EachRecord, name = "r") {
  const run_id = await driver.submit({ demands: { runner_id: name } });
  const runner = await driver.register(name);
  await driver.claim(runner);
  const execution_id = sampleId();
  await driver.append(runner, run_id, 1, 1, executionStarted(execution_id));
  return { run_id, execution_id, runner };
}
