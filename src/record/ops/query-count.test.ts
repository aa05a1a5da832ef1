import { expect, it } from "vitest";
import { createAgent } from "../../../test/fixtures/dispatch/drive.ts";
import { eachEngine, captureQueries } from "../../../test/fixtures/record/each-engine.ts";
import type { Query } from "../query.ts";
import { readDeletedSessions } from "../reads/sessions.ts";
import { claimRuns } from "./claim-runs.ts";
import { applyHeartbeat } from "./heartbeat.ts";
import { stopRuns } from "./stop-runs.ts";

eachEngine("one operation", (record) => {
  it("uses one query per run to stop runs that no runner has claimed", async () => {
    const { driver, store, now } = record;
    const run_ids = [];
    for (let i = 0; i < 10; i += 1) run_ids.push(await driver.submit({ session_id: `s${i}` }));
    const queries: Query[] = [];
    const changes = { runs: new Set<string>(), claimable: [], runnersWithOrders: new Set<string>() };
    const tx = { now: now(), audit: [], changes };
    const op = { op: "stop_runs", run_ids, reason: "user", by: "ann" } as const;
    expect(await store.engine.write(() => captureQueries(stopRuns(tx, op), queries))).toMatchObject({
      cancelled: run_ids,
    });
    expect(queries.filter(({ returns }) => returns !== "none")).toHaveLength(10);
  });

  it("releases the agent's cap and the session of a stopped run", async () => {
    const { driver, store } = record;
    const chat = createAgent("chat", { type: "autonomous", command: null, max_concurrent: 1 });
    const first = await driver.submit({ session_id: "s" }, chat);
    const second = await driver.submit({ session_id: "s", mode: "resume" }, chat);
    const claimableAgain: unknown[] = [];
    store.changes(({ claimable }) => claimableAgain.push(...claimable));
    await store.apply([{ op: "stop_runs", run_ids: [first], reason: "user", by: "ann" }]);
    expect(claimableAgain.length).toBeGreaterThan(0);
    expect(await driver.claim(await driver.register("r"))).toEqual([second]);
  });

  it("uses the same number of queries to claim ten runs as to claim one, and likewise for their heartbeat", async () => {
    const { driver, store, now } = record;
    const countQueries = async (runs: number): Promise<number[]> => {
      const runner = await driver.register(`r${runs}`);
      for (let i = 0; i < runs; i += 1) await driver.submit();
      const tx = () => ({
        now: now(),
        audit: [],
        changes: { runs: new Set<string>(), claimable: [], runnersWithOrders: new Set<string>() },
      });
      const [claimQueries, heartbeatQueries]: Query[][] = [[], []];
      const claim = { op: "claim_runs", ...runner, claim_id: "c", want: 50, ack_order: 0, lease_ms: 10_000 } as const;
      const claimed = await store.engine.write(() => captureQueries(claimRuns(tx(), claim), claimQueries!));
      if (!("claims" in claimed)) throw new Error("nothing was claimed");
      expect(claimed.claims).toHaveLength(runs);
      const held = claimed.claims.map(({ run_id, attempt }): [string, number] => [run_id, attempt]);
      const beat = { op: "heartbeat", ...runner, held, as_of_claim: null, lease_ms: 10_000 } as const;
      await store.engine.write(() => captureQueries(applyHeartbeat(tx(), beat), heartbeatQueries!));
      return [claimQueries!, heartbeatQueries!].map(
        (queries) => queries.filter(({ returns }) => returns !== "none").length,
      );
    };
    expect(await countQueries(10)).toEqual(await countQueries(1));
  });

  it("uses one query per hundred sessions to find those that no longer exist", async () => {
    const { driver, store } = record;
    for (const session_id of ["s7", "s150"]) await driver.submit({ session_id });
    const ids = Array.from({ length: 250 }, (_, index) => `s${index}`);
    const queries: Query[] = [];
    expect(await store.engine.read(() => captureQueries(readDeletedSessions(ids), queries))).toEqual(
      ids.filter((id) => id !== "s7" && id !== "s150"),
    );
    expect(queries).toHaveLength(3);
    expect(await store.read.deleted_sessions([])).toEqual([]);
  });

  it("gives each run its own invocation when one claim covers runs with different demands", async () => {
    const { driver } = record;
    const both = [];
    for (const tags of [[], ["fast"]])
      both.push(await driver.submit({ demands: { tags }, parameters: { tags }, prompt: `do ${tags.length}` }));
    const runner = await driver.register("r", { tags: ["fast"] });
    const { claims } = await driver.poll(runner, 5);
    expect(claims.map(({ run_id }) => run_id)).toEqual(both);
    expect(claims.map(({ attempt, invocation }) => [attempt, invocation.attempt, invocation.prompt])).toEqual([
      [1, 1, "do 0"],
      [1, 1, "do 1"],
    ]);
    expect(claims.map(({ invocation }) => invocation.parameters)).toEqual([{ tags: [] }, { tags: ["fast"] }]);
  });

  it("hands out at most fifty runs, and the others with the next claims", async () => {
    const { driver } = record;
    const runs = [];
    for (let i = 0; i < 60; i += 1) runs.push(await driver.submit());
    const runner = await driver.register("r", { slots: 100 });
    expect(await driver.claim(runner, 100, "a")).toEqual(runs.slice(0, 50));
    expect(await driver.claim(runner, 100, "a")).toEqual(runs.slice(0, 50));
    expect(await driver.claim(runner, 50, "b")).toEqual(runs.slice(50));
  });
});
