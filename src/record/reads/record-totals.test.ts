import { expect, it } from "vitest";
import { buildFinish, sampleRun } from "../../../test/fixtures/record/sample.ts";
import { scratchStores } from "../../../test/fixtures/record/scratch.ts";
import { readRecordTotals } from "./record-totals.ts";

const scratch = scratchStores();

it("counts every open run, even if there are more than fit into one batch", async () => {
  const store = await scratch.open(scratch.newDirectory());
  const runs = Array.from({ length: 10_007 }, () => sampleRun({ status: "running" }));
  const waiting = sampleRun({ status: "waiting" });
  const ended = sampleRun();
  await store.apply([...runs, waiting, ended].map((run) => ({ op: "create_run" as const, run, events: [] })));
  await store.apply([buildFinish(ended.run_id)]);
  const { runs: counted, ...rest } = await readRecordTotals(store.engine);
  expect(Object.fromEntries(counted.map(({ status, runs: count }) => [status, count]))).toEqual({
    pending: 0,
    claimed: 0,
    running: 10_007,
    waiting: 1,
    parked: 0,
    stopping: 0,
  });
  expect(rest).toEqual({ oldest_pending: null, runners: [], audit_rows: 0 });
});

it("is exact when the last batch is full", async () => {
  const store = await scratch.open(scratch.newDirectory());
  const runs = Array.from({ length: 5000 }, () => sampleRun({ status: "running" }));
  await store.apply(runs.map((run) => ({ op: "create_run" as const, run, events: [] })));
  const { runs: counted } = await readRecordTotals(store.engine);
  expect(counted.find(({ status }) => status === "running")?.runs).toBe(5000);
});
