import { describe, expect, it } from "vitest";
import { createAgent } from "../fixtures/dispatch/drive.ts";
import { buildFinish } from "../fixtures/record/sample.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";

const chat = createAgent("chat", { type: "autonomous", command: null });

/** What every store must report in its statistics. */
export function storeStatsContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the statistics contract`, () => {
    const { store, driver, now, advance } = eachWithStore(open);
    const day = 86_400_000;
    const stats = (created_by?: string, span = day) =>
      store.read.stats({
        since: new Date(now().getTime() + 1 - span).toISOString(),
        until: new Date(now().getTime() + 1).toISOString(),
        ...(created_by === undefined ? {} : { created_by }),
      });
    const end = async (created_by: string, result = {}): Promise<void> => {
      const runner = await driver.register("r");
      const run_id = await driver.submit({ created_by });
      await driver.claim(runner);
      await driver.finish(runner, run_id, 1, { result: buildFinish(run_id, [], result).result });
    };

    it("counts ends by time and failures by reason, filtered by owner", async () => {
      await end("ann");
      advance(3_600_000);
      await end("ann", { status: "failed", reason: "exit_nonzero" });
      await end("bob", { status: "failed", reason: "timeout" });
      await end("bob", { status: "failed", reason: "timeout" });
      await end("bob", { status: "cancelled" });
      const { throughput, failures, runs_finished, bucket_seconds, since } = await stats();
      expect({ bucket_seconds, runs_finished, failures }).toEqual({
        bucket_seconds: 900,
        runs_finished: 5,
        failures: [
          { reason: "timeout", count: 2 },
          { reason: "exit_nonzero", count: 1 },
        ],
      });
      expect(throughput[0]?.at).toBe(since);
      expect(throughput.length).toBeGreaterThanOrEqual(96);
      const nonEmptyBuckets = throughput.filter(
        ({ completed, failed, cancelled }) => completed + failed + cancelled > 0,
      );
      expect(nonEmptyBuckets).toMatchObject([
        { completed: 1, failed: 0, cancelled: 0 },
        { completed: 0, failed: 3, cancelled: 1 },
      ]);
      expect(Date.parse(nonEmptyBuckets[1]!.at) - Date.parse(nonEmptyBuckets[0]!.at)).toBe(3_600_000);
      expect(await stats("ann")).toMatchObject({
        runs_finished: 2,
        failures: [{ reason: "exit_nonzero", count: 1 }],
      });
      advance(2 * day);
      expect(await stats()).toMatchObject({ runs_finished: 0, failures: [] });
      const week = await stats(undefined, 7 * day);
      expect(week).toMatchObject({ runs_finished: 5, bucket_seconds: 3600 });
      const month = await stats(undefined, 30 * day);
      expect(month).toMatchObject({ runs_finished: 5, bucket_seconds: 86_400 });
      expect(month.throughput.reduce((sum, { failed }) => sum + failed, 0)).toBe(3);
    });

    it("counts an end once, however often it is sent, and each run of a batch", async () => {
      const runner = await driver.register("r", { slots: 9 });
      const runs = [await driver.submit(), await driver.submit(), await driver.submit()];
      await driver.claim(runner, 3);
      await Promise.all(runs.map((run_id) => driver.finish(runner, run_id, 1)));
      await Promise.all(runs.map((run_id) => driver.finish(runner, run_id, 1)));
      expect(await stats()).toMatchObject({ runs_finished: 3 });
    });

    it("counts waiting runs by reason, with the reasons of why", async () => {
      const tagged = await driver.submit({ demands: { tags: ["gpu"] } });
      expect(await stats()).toMatchObject({ now: { pending: 1 }, waiting: [{ reason: "agent", count: 1 }] });
      const runner = await driver.register("r", { slots: 1 });
      expect((await store.read.why(tagged))?.[0]?.demand).toBe("tags");
      const [running, next] = [
        await driver.submit({ created_by: "ann" }, chat),
        await driver.submit({ created_by: "ann" }, chat),
      ];
      expect(await stats("ann")).toMatchObject({ waiting: [{ reason: "turn", count: 2 }] });
      expect(await driver.claim(runner)).toEqual([running]);
      expect((await store.read.why(next))?.[0]?.demand).toBe("slots");
      const { now: counts, waiting } = await stats();
      expect(counts).toEqual({ pending: 2, running: 1, waiting: 0, parked: 0 });
      expect(waiting).toEqual([
        { reason: "slots", count: 1 },
        { reason: "tags", count: 1 },
      ]);
      const moves = ["running", "waiting"] as const;
      await driver.append(runner, running, 1, 1, ...moves.map((status) => ({ type: "status", status }) as const));
      expect(await stats("ann")).toMatchObject({
        now: { pending: 1, running: 0, waiting: 1 },
        waiting: expect.arrayContaining([{ reason: "approval", count: 1 }]),
      });
      expect(await stats("nobody")).toMatchObject({
        now: { pending: 0, running: 0, waiting: 0, parked: 0 },
        waiting: [],
      });
    });

    it("reports a full cap, a busy session and a parked run with the reasons of why", async () => {
      const runner = await driver.register("r", { slots: 9 });
      const capped = createAgent("capped", { max_concurrent: 1 });
      await driver.submit({}, capped);
      await driver.submit({ session_id: "s" }, chat);
      await driver.claim(runner, 2);
      const blockedByCap = await driver.submit({}, capped);
      const blocked = await driver.submit({ session_id: "s", mode: "resume" }, chat);
      expect((await store.read.why(blockedByCap))?.[0]?.demand).toBe("max_concurrent");
      expect((await store.read.why(blocked))?.[0]?.demand).toBe("session");
      const parked = await driver.submit({ session_id: "t" }, chat);
      await driver.claim(runner, 1);
      await driver.finish(runner, parked, 1, { parked: { why: "budget", message: "spent" } });
      const { waiting, now: counts } = await stats();
      expect(counts).toMatchObject({ pending: 2, parked: 1 });
      expect(waiting).toEqual(["budget", "max_concurrent", "session"].map((reason) => ({ reason, count: 1 })));
    });

    it("adds up cost by agent and day, filtered by owner", async () => {
      const runner = await driver.register("r", { slots: 9 });
      const run_id = await driver.submit({ session_id: "s", created_by: "ann" }, chat);
      await driver.claim(runner);
      const usage = { input_tokens: 3, output_tokens: 2, cost_usd: 0.5 };
      await driver.append(runner, run_id, 1, 1, { type: "usage", usage });
      const today = now().toISOString().slice(0, 10);
      const cost = [{ day: today, agent_name: "chat", runs: 1, ...usage }];
      expect((await stats()).cost).toEqual(cost);
      expect((await stats("ann")).cost).toEqual(cost);
      expect((await stats("bob")).cost).toEqual([]);
    });
  });
}
