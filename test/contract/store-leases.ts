import { describe, expect, it } from "vitest";
import { createAgent, output } from "../fixtures/dispatch/drive.ts";
import type { EachWithStore } from "./each-with-store.ts";

const rescue = { op: "rescue", unmatched_ms: 300_000, limit: 100 } as const;

/** What happens to the runs of a runner that disappears or gives them back. */
export function describeLeases({ store, driver, now, advance }: EachWithStore): void {
  describe("giving back", () => {
    it("requeues drained runs at no cost, and counts those that a crash lost", async () => {
      const retriedAgent = createAgent("often", { max_attempts: 2 });
      const run = await driver.submit({}, retriedAgent);
      const runner = await driver.register("r");
      const lostResult = {
        type: "result",
        status: "failed",
        reason: "runner_lost",
        error: "died",
        exit_code: null,
        result_text: null,
        result_data: null,
      } as const;
      await driver.claim(runner);
      await driver.append(runner, run, 1, 1, output("1"));
      expect(await driver.finish(runner, run, 1, { give_back: "at_no_cost" })).toEqual({ ok: true, last_n: 1 });
      expect(await driver.finish(runner, run, 1, { give_back: "at_no_cost" })).toEqual({
        ok: true,
        last_n: 1,
        repeated: true,
      });
      expect(await store.read.run(run)).toMatchObject({
        status: "pending",
        failures: 0,
        runner_id: null,
        started_at: null,
      });
      await driver.claim(runner);
      await driver.finish(runner, run, 2, { give_back: "as_failure", result: lostResult });
      expect(await store.read.run(run)).toMatchObject({ status: "pending", failures: 1 });
      await driver.claim(runner);
      await driver.finish(runner, run, 3, { give_back: "as_failure", result: lostResult });
      expect(await store.read.run(run)).toMatchObject({
        status: "failed",
        reason: "runner_lost",
        failures: 2,
        attempt: 3,
      });
      expect((await store.read.events(run, 0, 100)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    });

    it("requeues only runs that never arrived", async () => {
      const [one, two, three] = [await driver.submit(), await driver.submit(), await driver.submit()];
      const runner = await driver.register("r");
      await driver.claim(runner, 1, "a");
      await driver.claim(runner, 1, "b");
      // Made before b was answered, so it says nothing about b.
      expect(await driver.beat(runner, [[one, 1]], "a")).toMatchObject({ ok: true, requeued: [], fenced: [] });
      expect(await driver.beat(runner, [[one, 1]], "unknown")).toMatchObject({ ok: true, requeued: [] });
      await driver.claim(runner, 1, "c");
      expect(await driver.beat(runner, [[one, 1]], "b")).toMatchObject({ ok: true, requeued: [two] });
      expect(await driver.statuses(one, two, three)).toEqual(["claimed", "pending", "claimed"]);
      expect(await store.read.run(two)).toMatchObject({ failures: 0, attempt: 1 });
      expect(
        await driver.beat(
          runner,
          [
            [one, 1],
            [two, 1],
          ],
          "b",
        ),
      ).toMatchObject({ fenced: [[two, 1]], abandon: [[two, 1]] });
    });

    it("counts a run that a runner lost after it had started", async () => {
      const run = await driver.submit();
      const runner = await driver.register("r");
      await driver.claim(runner);
      await driver.append(runner, run, 1, 1, output("begun"));
      const newRegistration = await driver.register("r");
      expect(await driver.beat(newRegistration, [], null)).toMatchObject({ ok: true, requeued: [] });
      expect(await store.read.run(run)).toMatchObject({ status: "failed", reason: "runner_lost" });
    });

    it("lets a restarted runner continue with what it held", async () => {
      const run = await driver.submit();
      const registrationBefore = await driver.register("r");
      await driver.claim(registrationBefore);
      const registrationAfter = await driver.register("r");
      expect(registrationAfter.epoch).toBeGreaterThan(registrationBefore.epoch);
      expect(await driver.beat(registrationBefore, [[run, 1]], null)).toEqual({ ok: false, conflict: "old_epoch" });
      expect(await driver.beat(registrationAfter, [[run, 1]], null)).toMatchObject({
        ok: true,
        requeued: [],
        fenced: [],
      });
      expect(await driver.append(registrationAfter, run, 1, 1, output("1"))).toEqual({ ok: true, last_n: 1 });
    });

    it("takes back what a runner still held when it left", async () => {
      const run = await driver.submit({}, createAgent("own"));
      const runner = await driver.register("r", { agents: [createAgent("own")] });
      await driver.claim(runner);
      expect(await store.read.agents("own")).toMatchObject([{ source: "runner", runner_id: "r" }]);
      expect(await store.apply([{ op: "leave_runner", ...runner }])).toEqual([
        { ok: true, op: "leave_runner", requeued: [run] },
      ]);
      expect(await store.apply([{ op: "leave_runner", ...runner }])).toEqual([
        { ok: false, conflict: "unknown_runner" },
      ]);
      expect(await store.read.agents("own")).toEqual([]);
      expect(await store.read.run(run)).toMatchObject({ status: "pending", failures: 0 });
    });
  });

  describe("leases", () => {
    it("loses a runner whose lease expired, and requeues or fails its runs depending on their attempts", async () => {
      const once = await driver.submit();
      const twice = await driver.submit({}, createAgent("twice", { max_attempts: 2 }));
      const runner = await driver.register("r");
      await driver.claim(runner, 5);
      advance(9_999);
      expect(await store.apply([rescue])).toMatchObject([{ lost_runners: [], requeued: [], failed: [] }]);
      await driver.beat(
        runner,
        [
          [once, 1],
          [twice, 1],
        ],
        null,
      );
      advance(10_001);
      expect(await store.apply([rescue])).toMatchObject([
        { lost_runners: ["r"], requeued: [twice], failed: [once], more: false },
      ]);
      expect(await store.apply([rescue])).toMatchObject([{ lost_runners: [], requeued: [], failed: [] }]);
      expect(await store.read.run(once)).toMatchObject({ status: "failed", reason: "runner_lost", failures: 1 });
      expect(await store.read.run(twice)).toMatchObject({ status: "pending", failures: 1 });
      expect((await driver.event(once, -1))?.type).toBe("result");
      expect(await driver.append(runner, twice, 1, 1, output("late"))).toMatchObject({ conflict: "fenced" });
      expect(await driver.append(runner, once, 1, 1, output("late"))).toMatchObject({ ok: false });
      expect(await driver.beat(runner, [], null)).toEqual({ ok: false, conflict: "unknown_runner" });
      expect(await store.read.runner("r")).toMatchObject({ status: "lost" });
    });

    it("loses a runner only if the judging process has listened for a whole lease", async () => {
      const run = await driver.submit();
      const [silent, reporting] = [await driver.register("silent"), await driver.register("heard")];
      await driver.claim(silent);
      const rescueAs = async (previous?: { since: number; at: number }) => {
        await driver.beat(reporting, [], null);
        const listening = { lease_ms: 10_000, ...(previous ? { previous } : {}) };
        const [rescued] = await store.apply([{ ...rescue, listening }]);
        if (!rescued.ok) throw new Error("rescue has no conflicts");
        return rescued;
      };
      // Each process was started a moment ago.
      for (let process = 0; process < 6; process += 1) {
        advance(4000);
        expect(await rescueAs()).toMatchObject({ lost_runners: [], failed: [] });
      }
      let registrationBefore = await rescueAs();
      advance(5001);
      // It was suspended for more than half a lease.
      registrationBefore = await rescueAs(registrationBefore);
      const since = registrationBefore.at;
      for (let index = 0; index < 2; index += 1) {
        advance(5000 - index);
        registrationBefore = await rescueAs(registrationBefore);
        expect(registrationBefore).toMatchObject({ since, lost_runners: [] });
      }
      expect((await driver.append(silent, run, 1, 1, output("1"))).ok).toBe(true);
      advance(1);
      expect(await rescueAs(registrationBefore)).toMatchObject({ since, lost_runners: ["silent"], failed: [run] });
    });

    it("fails no unmatched run before the judging process has listened for the whole waiting time", async () => {
      const run = await driver.submit({ demands: { tags: ["gpu"] } });
      advance(600_000);
      const at = now().getTime();
      const rescueAs = (since: number) =>
        store.apply([{ ...rescue, listening: { lease_ms: 10_000, previous: { since, at } } }]);
      expect(await rescueAs(at - 299_999)).toMatchObject([{ failed: [] }]);
      expect(await rescueAs(at - 300_000)).toMatchObject([{ failed: [run] }]);
    });

    it("treats a held poll as a sign of life only for an idle runner", async () => {
      await driver.submit();
      const [runner, other] = [await driver.register("r"), await driver.register("other")];
      const newRegistration = (claim_id: string) =>
        store.apply([
          { op: "claim_runs", ...runner, claim_id, want: 0, ack_order: 0, lease_ms: 10_000, is_repeat: true },
        ]);
      const renew = () => store.apply([{ op: "renew_idle", runner_ids: ["r", "other", "nobody"], lease_ms: 10_000 }]);
      await driver.claim(runner, 0, "idle");
      advance(8_000);
      await renew();
      advance(8_000);
      expect(await store.apply([rescue])).toMatchObject([{ lost_runners: [] }]);
      await driver.claim(runner, 1, "busy");
      advance(8_000);
      await newRegistration("busy");
      await renew();
      advance(8_000);
      expect(await store.apply([rescue])).toMatchObject([{ lost_runners: ["r"] }]);
      await renew();
      expect((await store.read.runner("r"))?.status).toBe("lost");
      expect((await store.read.runner(other.runner_id))?.status).toBe("online");
    });

    it("renews any number of waiting runners", async () => {
      const names = Array.from({ length: 250 }, (_, index) => `r${index}`);
      await Promise.all(names.map((name) => driver.register(name)));
      advance(8_000);
      await store.apply([{ op: "renew_idle", runner_ids: names, lease_ms: 10_000 }]);
      advance(8_000);
      expect(await store.apply([rescue])).toMatchObject([{ lost_runners: [] }]);
    });

    it("refuses a second live runner and another owner's id, and lets a successor take over", async () => {
      const run = await driver.submit();
      const runner = await driver.register("r");
      await driver.claim(runner);
      await expect(driver.register("r", {}, "another key")).rejects.toThrow("duplicate_runner");
      advance(10_001);
      const registration = {
        hostname: "h",
        project_dir: "/",
        executor_profile: "p",
        executor: { type: "t", config: {} },
        tags: [],
        require_matching_tags: false,
        agents: [],
        slots: 1,
      };
      const foreignId = await store.apply([
        { op: "register_runner", runner_id: "r", key_hash: "key", owner: "eve", registration, lease_ms: 1000 },
      ]);
      expect(foreignId).toEqual([{ ok: false, conflict: "duplicate_runner" }]);
      // Its lease has expired, but nobody has judged that yet: its messages may just be late.
      await expect(driver.register("r", {}, "another key")).rejects.toThrow("duplicate_runner");
      await store.apply([rescue]);
      await driver.register("r", {}, "another key");
      expect(await driver.statuses(run)).toEqual(["failed"]);
      expect(await driver.beat(runner, [], null)).toEqual({ ok: false, conflict: "old_epoch" });
      expect(
        await store.apply([{ op: "heartbeat", ...runner, owner: "eve", held: [], as_of_claim: null, lease_ms: 1 }]),
      ).toEqual([{ ok: false, conflict: "unknown_runner" }]);
    });

    it("fails runs that no runner can take, but only after they have waited", async () => {
      const runner = await driver.register("r");
      const fits = await driver.submit();
      const never = await driver.submit({ demands: { tags: ["gpu"] } });
      advance(299_000);
      await driver.beat(runner, [], null);
      const recentRun = await driver.submit({ demands: { tags: ["gpu"] } });
      expect(await store.apply([rescue])).toMatchObject([{ failed: [] }]);
      advance(2_000);
      await driver.beat(runner, [], null);
      expect(await store.apply([rescue])).toMatchObject([{ failed: [never] }]);
      expect(await store.read.run(never)).toMatchObject({ status: "failed", reason: "no_matching_runner" });
      advance(299_000);
      await driver.beat(runner, [], null);
      expect(await store.apply([rescue])).toMatchObject([{ failed: [recentRun] }]);
      expect(await driver.statuses(fits)).toEqual(["pending"]);
    });

    it("counts from when the last matching runner left", async () => {
      const runner = await driver.register("r");
      const run = await driver.submit();
      advance(1_000_000);
      await driver.beat(runner, [], null);
      await store.apply([{ op: "leave_runner", ...runner }]);
      advance(299_000);
      expect(await store.apply([rescue])).toMatchObject([{ failed: [] }]);
      advance(2_000);
      expect(await store.apply([rescue])).toMatchObject([{ failed: [run] }]);
    });

    it("rescues in small steps when there is much to do", async () => {
      for (let i = 0; i < 7; i += 1) await driver.submit();
      await driver.claim(await driver.register("r"), 7);
      advance(10_001);
      const some = { ...rescue, limit: 3 };
      const failed = [];
      for (let hasMore = true; hasMore;) {
        const [result] = await store.apply([some]);
        if (!result.ok) throw new Error(result.conflict);
        expect(result.failed.length).toBeLessThanOrEqual(3);
        failed.push(...result.failed);
        hasMore = result.more;
      }
      expect(failed).toHaveLength(7);
    });
  });
}
