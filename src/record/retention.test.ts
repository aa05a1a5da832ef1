import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  buildFinish,
  numbered,
  recordRuns,
  sampleId,
  sampleRun,
  timeAfter,
} from "../../test/fixtures/record/sample.ts";
import { scratchStores } from "../../test/fixtures/record/scratch.ts";
import { verifyAudit } from "./audit/verify.ts";
import { pruneRuns } from "./retention.ts";

const scratch = scratchStores();

it("removes runs that finished before a given time, with their bodies and events, and nothing else", async () => {
  const directory = scratch.newDirectory();
  const store = await scratch.open(directory);
  const old = await recordRuns(store, 120);
  const open = sampleRun({ parameters: { a: 1 } });
  await store.apply([{ op: "create_run", run: open, events: [] }]);
  const boundary = new Date(timeAfter(sampleId(), 10));
  const recent = await recordRuns(store, 30);

  expect(await pruneRuns(store, boundary)).toEqual({ runs: 120 });
  expect(await store.read.run(old[0] ?? "")).toBeNull();
  expect(await store.read.events(old[0] ?? "", 0, 10)).toEqual([]);
  const remaining = await store.read.runs({}, { limit: 1000 });
  expect(remaining.map((row) => row.run_id).toReversed()).toEqual([open.run_id, ...recent]);
  expect(await store.read.run(open.run_id)).toEqual(open);
  expect(Number(store.connection.sql("select count(*) as count from events").get()?.["count"])).toBe(90);
  expect(await verifyAudit({ directory })).toMatchObject({ ok: true, rows: 300 });
});

it("removes a run with a long log piece by piece", async () => {
  const store = await scratch.open(scratch.newDirectory());
  const run = sampleRun();
  const lines = Array.from({ length: 2500 }, () => ({ type: "assistant" as const, text: "line" }));
  await store.apply([{ op: "create_run", run, events: numbered(run.run_id, 1, ...lines) }, buildFinish(run.run_id)]);
  await recordRuns(store, 1);
  expect(await pruneRuns(store, new Date(timeAfter(run.run_id, 11)))).toEqual({ runs: 1 });
  expect(Number(store.connection.sql("select count(*) as count from events").get()?.["count"])).toBe(3);
});

it("removes the output files of the runs it removes, and no others", async () => {
  const directory = scratch.newDirectory();
  const store = await scratch.open(directory);
  const [old = "", stderrOnly = ""] = await recordRuns(store, 2);
  const boundary = new Date(timeAfter(sampleId(), 10));
  const [recent = ""] = await recordRuns(store, 1);
  const logs = join(directory, "logs");
  mkdirSync(logs);
  const kept = [`${recent}.stdout`, `${old}.1.jsonl`, "notes"].toSorted();
  for (const name of [`${old}.stdout`, `${old}.stderr`, `${stderrOnly}.stderr`, ...kept])
    writeFileSync(join(logs, name), "");
  expect(await pruneRuns(store, boundary)).toEqual({ runs: 2 });
  expect(readdirSync(logs).toSorted()).toEqual(kept);
});

it("does not delete files outside the output directory, even if a run id contains `../`", async () => {
  const directory = scratch.newDirectory();
  const store = await scratch.open(directory);
  mkdirSync(join(directory, "logs"));
  writeFileSync(join(directory, "other.stdout"), "");
  const run = sampleRun();
  const run_id = "../other";
  await store.apply([
    { op: "create_run", run: { ...run, run_id }, events: [] },
    { ...buildFinish(run.run_id), run_id },
  ]);
  await recordRuns(store, 1);
  expect(await pruneRuns(store, new Date("2100-01-01"))).toEqual({ runs: 1 });
  expect(readdirSync(directory)).toContain("other.stdout");
});

it("never reuses a cursor", async () => {
  const store = await scratch.open(scratch.newDirectory());
  await recordRuns(store, 3);
  const last = (await store.read.feed(0, 1000)).at(-1)?.cursor ?? 0;
  await pruneRuns(store, new Date("2100-01-01"));
  await recordRuns(store, 1);
  expect((await store.read.feed(last, 1000)).map(({ seq }) => seq)).toEqual([1, 2, 3]);
});
