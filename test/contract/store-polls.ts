import { describe, expect, it } from "vitest";
import type { Poll } from "../../src/model/dispatch-reads.ts";
import { createAgent, type DrivenRunner, output } from "../fixtures/dispatch/drive.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";

/** What every store must answer to polling runners, before anything is written for them. */
export function storePollContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the contract of polls`, () => {
    const { store, driver, now, advance } = eachWithStore(open);
    const poller = (runner: DrivenRunner, changes: Partial<Poll> = {}) =>
      store.read.poller({ ...runner, claim_id: "c", want: 1, ...changes });
    const isIdle = async (runner: DrivenRunner, changes: Partial<Poll> = {}) => {
      const pollerFields = await poller(runner, changes);
      return "conflict" in pollerFields ? pollerFields.conflict : pollerFields.idle;
    };

    it("returns what a run's demands are compared with, and until when the lease lasts", async () => {
      const runner = await driver.register("r", { tags: ["a", "b"], only_agent: "echo", require_matching_tags: true });
      expect(await poller(runner)).toEqual({
        runner_id: "r",
        hostname: "host",
        place_id: null,
        project_dir: "/project",
        executor_profile: "profile",
        executor_type: "procedural",
        tags: ["a", "b"],
        require_matching_tags: true,
        only_pinned: false,
        only_agent: "echo",
        draining: false,
        lease_until: now().getTime() + 10_000,
        idle: false,
      });
      await driver.poll(runner, 1, "c");
      advance(3000);
      await store.apply([{ op: "drain_runner", runner_id: "r", draining: true }]);
      expect(await poller(await driver.register("plain"))).toMatchObject({ only_agent: null, draining: false });
      expect(await poller(runner)).toMatchObject({
        draining: true,
        idle: true,
        lease_until: now().getTime() + 7000,
      });
    });

    it("refuses the same runners as claim_runs", async () => {
      const runner = await driver.register("r");
      expect(await isIdle({ runner_id: "nobody", epoch: 1 })).toBe("unknown_runner");
      expect(await isIdle(runner, { epoch: runner.epoch - 1 })).toBe("old_epoch");
      expect(await isIdle(runner, { owner: "eve" })).toBe("unknown_runner");
      expect(await isIdle(runner, { owner: "ann" })).toBe(false);
      advance(10_001);
      await store.apply([{ op: "rescue", unmatched_ms: 1e9, limit: 10 }]);
      expect(await isIdle(runner)).toBe("unknown_runner");
    });

    it("lets a poll wait once its claim is known and while there is nothing for it", async () => {
      const [runner, other] = [await driver.register("r"), await driver.register("other")];
      await driver.poll(other, 1, "c");
      expect(await isIdle(runner)).toBe(false);
      await driver.poll(runner, 1, "c");
      expect(await isIdle(runner)).toBe(true);
      expect(await isIdle(runner, { claim_id: "d" })).toBe(false);
      await driver.submit({ demands: { tags: ["x"] } });
      expect(await isIdle(runner)).toBe(true);
      const run = await driver.submit();
      expect(await isIdle(runner)).toBe(false);
      expect(await isIdle(runner, { want: 0 })).toBe(true);
      await store.apply([{ op: "drain_runner", runner_id: "r", draining: true }]);
      expect(await isIdle(runner)).toBe(true);
      expect(await driver.claim(other)).toEqual([run]);
      await store.apply([{ op: "drain_runner", runner_id: "r", draining: false }]);
      expect(await isIdle(runner)).toBe(true);
    });

    it("lets it wait despite runs that it could not claim: over a cap, of another agent, blocked by their session", async () => {
      const capped = createAgent("capped", { max_concurrent: 1 });
      const [runner, echoRunner] = [await driver.register("r"), await driver.register("picky", { only_agent: "echo" })];
      await driver.poll(runner, 1, "c");
      await driver.poll(echoRunner, 1, "c");
      const [first] = [await driver.submit({}, capped), await driver.submit({}, capped)];
      expect([await isIdle(runner), await isIdle(echoRunner)]).toEqual([false, true]);
      expect(await driver.claim(runner, 1, "d")).toEqual([first]);
      expect([await isIdle(runner), await isIdle(echoRunner)]).toEqual([true, true]);
      await driver.finish(runner, first, 1);
      expect([await isIdle(runner), await isIdle(echoRunner)]).toEqual([false, true]);
      await driver.claim(runner, 1, "e");
      const chat = createAgent("chat", { type: "autonomous", command: null });
      const session = await driver.submit({ session_id: "s" }, chat);
      await driver.submit({ session_id: "s", mode: "resume" }, chat);
      expect(await driver.claim(runner, 1, "f")).toEqual([session]);
      expect(await isIdle(runner)).toBe(true);
    });

    it("does not let it wait while the same claim has runs, which have to be repeated", async () => {
      const run = await driver.submit();
      const runner = await driver.register("r");
      await driver.poll(runner, 1, "c");
      await driver.poll(runner, 1, "d");
      expect([await isIdle(runner), await isIdle(runner, { claim_id: "d" })]).toEqual([false, true]);
      await driver.append(runner, run, 1, 1, output("begun"));
      expect(await isIdle(runner)).toBe(false);
      await driver.finish(runner, run, 1, { last_n: 1 });
      expect(await isIdle(runner)).toBe(true);
    });

    it("does not let it wait with an open order, until that is acknowledged or obsolete", async () => {
      const [first, second] = [await driver.submit(), await driver.submit()];
      const runner = await driver.register("r");
      await driver.poll(runner, 2, "b");
      await driver.poll(runner, 0, "c");
      await store.apply([{ op: "stop_runs", run_ids: [first], reason: "user", by: "ann" }]);
      expect(await isIdle(runner)).toBe(false);
      expect(await store.read.runners_with_work(["r"])).toEqual(["r"]);
      const { orders } = await driver.poll(runner, 0, "c");
      expect(await isIdle(runner)).toBe(false);
      await driver.poll(runner, 0, "c", orders.at(-1)?.no);
      expect(await isIdle(runner)).toBe(true);
      await store.apply([{ op: "stop_runs", run_ids: [second], reason: "user", by: "ann" }]);
      expect(await isIdle(runner)).toBe(false);
      await driver.finish(runner, second, 1);
      expect(await isIdle(runner)).toBe(true);
      expect(await store.read.runners_with_work(["r"])).toEqual([]);
    });

    it("names the runners that have something to fetch", async () => {
      const names = Array.from({ length: 450 }, (_, index) => `r${index}`);
      await Promise.all(names.map((name) => driver.register(name)));
      expect(await store.read.runners_with_work(names)).toEqual([]);
      expect(await store.read.runners_with_work([])).toEqual([]);
      for (const runner_id of ["r0", "r199", "r200", "r449"]) await driver.submit({ demands: { runner_id } });
      expect((await store.read.runners_with_work([...names, "nobody"])).sort()).toEqual(["r0", "r199", "r200", "r449"]);
      expect(await store.read.runners_with_work(["r1", "r200"])).toEqual(["r200"]);
      await driver.submit();
      expect(await store.read.runners_with_work(names)).toHaveLength(450);
    });
  });
}
