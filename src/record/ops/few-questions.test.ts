import { expect, it } from "vitest";
import { agentNamed } from "../../../test/fixtures/dispatch/drive.ts";
import { eachEngine, watched } from "../../../test/fixtures/record/each-engine.ts";
import type { Query } from "../query.ts";
import { stopRuns } from "./stop-runs.ts";

eachEngine("one operation", (record) => {
  it("asks once for each run it stops before anybody had it", async () => {
    const { d, store, now } = record;
    const run_ids = [];
    for (let i = 0; i < 10; i += 1) run_ids.push(await d.submit({ session_id: `s${i}` }));
    const asks: Query[] = [];
    const changed = { runs: new Set<string>(), claimable: [], ordered: new Set<string>() };
    const tx = { now: now(), audit: [], changed };
    const op = { op: "stop_runs", run_ids, reason: "user", by: "ann" } as const;
    expect(await store.engine.write(() => watched(stopRuns(tx, op), asks))).toMatchObject({ cancelled: run_ids });
    expect(asks.filter(({ gives }) => gives !== "none")).toHaveLength(10);
  });

  it("frees what a stopped run held up: its agent's cap and its session", async () => {
    const { d, store } = record;
    const chat = agentNamed("chat", { type: "autonomous", command: null, max_concurrent: 1 });
    const first = await d.submit({ session_id: "s" }, chat);
    const second = await d.submit({ session_id: "s", mode: "resume" }, chat);
    const heard: unknown[] = [];
    store.changes(({ claimable }) => heard.push(...claimable));
    await store.apply([{ op: "stop_runs", run_ids: [first], reason: "user", by: "ann" }]);
    expect(heard.length).toBeGreaterThan(0);
    expect(await d.claim(await d.register("r"))).toEqual([second]);
  });

  it("hands out fifty runs at most, and the others with the next claims", async () => {
    const { d } = record;
    const runs = [];
    for (let i = 0; i < 60; i += 1) runs.push(await d.submit());
    const runner = await d.register("r", { slots: 100 });
    expect(await d.claim(runner, 100, "a")).toEqual(runs.slice(0, 50));
    expect(await d.claim(runner, 100, "a")).toEqual(runs.slice(0, 50));
    expect(await d.claim(runner, 50, "b")).toEqual(runs.slice(50));
  });
});
