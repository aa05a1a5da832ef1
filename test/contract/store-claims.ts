import { describe, expect, it } from "vitest";
import { createAgent, output } from "../fixtures/dispatch/drive.ts";
import type { Change } from "../../src/model/store.ts";
import type { EachWithStore } from "./each-with-store.ts";

/** Which runner gets a run, and which runners may write to it. */
export function describeClaims({ store, driver, now, advance }: EachWithStore): void {
  describe("claims", () => {
    it("hands out by priority, then age, and records it in the run and its log", async () => {
      const [low, high, second] = [
        await driver.submit(),
        await driver.submit({ priority: 5, parameters: { a: 1 }, prompt: "p" }),
        await driver.submit({ priority: 5 }),
      ];
      const runner = await driver.register("r");
      const { claims } = await driver.poll(runner, 2);
      expect(claims.map(({ run_id }) => run_id)).toEqual([high, second]);
      expect(claims[0]?.invocation).toMatchObject({
        run_id: high,
        attempt: 1,
        mode: "start",
        parameters: { a: 1 },
        prompt: "p",
        executor_config: { a: 1 },
        agent: { name: "echo" },
      });
      expect(await store.read.run(high)).toMatchObject({
        status: "claimed",
        attempt: 1,
        runner_id: "r",
        claimed_at: now().toISOString(),
      });
      expect(await driver.event(high, 0)).toEqual({ type: "status", status: "pending" });
      expect(await driver.event(high, -1)).toMatchObject({ type: "status", status: "claimed" });
      expect(await driver.claim(runner, 5)).toEqual([low]);
      expect(await driver.claim(runner, 5)).toEqual([]);
    });

    it("answers the same claim_id with the same claims, even after a newer one was answered", async () => {
      const [one, two] = [await driver.submit(), await driver.submit()];
      const runner = await driver.register("r");
      expect(await driver.claim(runner, 1, "a")).toEqual([one]);
      expect(await driver.claim(runner, 2, "a")).toEqual([one]);
      expect(await driver.claim(runner, 1, "b")).toEqual([two]);
      const three = await driver.submit();
      expect(await driver.claim(runner, 1, "a")).toEqual([one]);
      await driver.finish(runner, one, 1);
      expect(await driver.claim(runner, 1, "a")).toEqual([]);
      expect(await driver.claim(runner, 0, "c")).toEqual([]);
      expect(await driver.claim(runner, 1, "c")).toEqual([three]);
    });

    it("gives a late copy of a poll nothing once a report names its claim as answered", async () => {
      const first = await driver.submit();
      const runner = await driver.register("r");
      expect(await driver.claim(runner, 1, "a")).toEqual([first]);
      await driver.beat(runner, [[first, 1]], "a");
      await driver.finish(runner, first, 1);
      const second = await driver.submit();
      expect(await driver.claim(runner, 1, "a")).toEqual([]);
      await driver.beat(runner, [], "a");
      expect(await driver.claim(runner, 1, "a")).toEqual([]);
      expect(await driver.claim(runner, 1, "b")).toEqual([second]);
      await driver.beat(runner, [[second, 1]], "b");
      await driver.beat(runner, [], "a");
      expect(await store.read.run(second)).toMatchObject({ status: "claimed", attempt: 1 });
    });

    it("claims a run in the transaction that creates it", async () => {
      const runner = await driver.register("r");
      const claim = (claim_id: string) => ({
        ...runner,
        op: "claim_runs" as const,
        claim_id,
        want: 1,
        ack_order: 0,
        lease_ms: 10_000,
        is_repeat: true as const,
      });
      const changes: Change[] = [];
      const stop = store.changes((change) => changes.push(change));
      const create = driver.buildCreate();
      const { run_id } = create.run;
      const [created, claimed] = await store.apply([create, claim("c")]);
      stop();
      expect(created).toEqual({ ok: true, last_n: 0 });
      expect(claimed).toMatchObject({ ok: true, claims: [{ run_id, attempt: 1 }] });
      expect(changes.filter(({ runs }) => runs?.has(run_id))).toHaveLength(1);
      expect(await driver.statuses(run_id)).toEqual(["claimed"]);
      expect(await driver.event(run_id, 0)).toEqual({ type: "status", status: "pending" });
      expect(await store.apply([create, claim("c")])).toMatchObject([
        { ok: true, repeated: true },
        { ok: true, claims: [{ run_id, attempt: 1 }] },
      ]);

      const capped = createAgent("capped", { max_concurrent: 1 });
      const [first, second] = [driver.buildCreate({}, capped), driver.buildCreate({}, capped)];
      expect(await store.apply([first, claim("d")])).toMatchObject([
        { ok: true },
        { ok: true, claims: [{ run_id: first.run.run_id }] },
      ]);
      expect(await store.apply([second, claim("e")])).toMatchObject([{ ok: true }, { ok: true, claims: [] }]);
      expect(await driver.statuses(second.run.run_id)).toEqual(["pending"]);

      const other = driver.buildCreate({ demands: { tags: ["x"] } });
      const urgent = await driver.submit({ priority: 9 });
      expect(await store.apply([other, claim("e")])).toMatchObject([
        { ok: true },
        { ok: true, claims: [{ run_id: urgent }] },
      ]);
      await driver.register("r");
      const laterRun = driver.buildCreate({ created_by: "bob" });
      expect(await store.apply([laterRun, claim("f")])).toMatchObject([
        { ok: true },
        { ok: false, conflict: "old_epoch" },
      ]);
      expect(await driver.statuses(laterRun.run.run_id)).toEqual(["pending"]);
    });

    it("matches every demand, and all tags", async () => {
      const wants = [
        { hostname: "other" },
        { project_dir: "/other" },
        { executor_profile: "other" },
        { executor_type: "other" },
        { runner_id: "other" },
        { tags: ["a", "b"] },
      ];
      const runs = [];
      for (const demands of wants) runs.push(await driver.submit({ demands }));
      const plain = await driver.register("r", { tags: ["a"] });
      expect(await driver.claim(plain, 10)).toEqual([]);
      const other = await driver.register("other", {
        hostname: "other",
        project_dir: "/other",
        executor_profile: "other",
        executor: { type: "other", config: {} },
        tags: ["b", "c", "a"],
      });
      expect(await driver.claim(other, 10)).toEqual(runs);
    });

    it("gives a runner that requires matching tags no untagged run", async () => {
      const untagged = await driver.submit();
      const tagged = await driver.submit({ demands: { tags: ["a"] } });
      const restrictedRunner = await driver.register("picky", { tags: ["a"], require_matching_tags: true });
      expect(await driver.claim(restrictedRunner, 5)).toEqual([tagged]);
      expect(await driver.claim(await driver.register("r"), 5)).toEqual([untagged]);
    });

    it("lets no more runs of an agent work than its cap allows, and does not hold up other runs", async () => {
      const capped = createAgent("capped", { max_concurrent: 2 });
      const runs = [];
      for (let i = 0; i < 4; i += 1) runs.push(await driver.submit({ priority: 9 }, capped));
      const uncapped = await driver.submit();
      const onOtherHost = await driver.submit({ demands: { hostname: "host" }, priority: 9 }, capped);
      const [a, b] = [await driver.register("a"), await driver.register("b")];
      expect(await driver.claim(a, 10)).toEqual([runs[0], runs[1], uncapped]);
      expect(await driver.claim(b, 10)).toEqual([]);
      expect((await store.read.why(runs[2]!))?.map(({ demand }) => demand)).toEqual(["max_concurrent"]);
      await driver.finish(a, runs[0]!, 1);
      expect(await driver.claim(b, 10)).toEqual([runs[2]]);
      await driver.finish(a, runs[1]!, 1);
      await driver.finish(b, runs[2]!, 1);
      expect(await driver.claim(b, 10)).toEqual([runs[3], onOtherHost]);
    });

    it("releases the cap and a slot while a run waits, and counts it again when it resumes", async () => {
      const capped = createAgent("capped", { max_concurrent: 1 });
      const runs = [await driver.submit({}, capped), await driver.submit({}, capped), await driver.submit({}, capped)];
      const [first = "", second = "", third = ""] = runs;
      const runner = await driver.register("r");
      expect(await driver.claim(runner, 3)).toEqual([first]);
      const startedAt = now().toISOString();
      await driver.append(runner, first, 1, 1, output("begun"));
      const changes: Change[] = [];
      store.changes((change) => changes.push(change));
      const waitingEvent = { type: "status", status: "waiting", reason: "approval" } as const;
      await driver.append(runner, first, 1, 2, waitingEvent);
      expect(changes.at(-1)?.claimable).toHaveLength(1);
      expect(await store.read.run(first)).toMatchObject({ status: "waiting", waiting_for: "approval" });
      expect(await store.read.runner("r")).toMatchObject({ running: 0 });
      expect(await driver.claim(runner, 3)).toEqual([second]);
      advance(1000);
      await driver.append(runner, first, 1, 3, { type: "status", status: "running" });
      expect(await store.read.run(first)).toMatchObject({
        status: "running",
        started_at: startedAt,
        waiting_for: null,
      });
      expect(await store.read.runner("r")).toMatchObject({ running: 2 });
      await driver.finish(runner, second, 1);
      expect(await driver.claim(runner, 3)).toEqual([]);
      await driver.finish(runner, first, 1);
      expect(await driver.claim(runner, 3)).toEqual([third]);
    });

    it("shows a completed run as done, whatever progress it reported last", async () => {
      const run = await driver.submit();
      const runner = await driver.register("r");
      await driver.claim(runner);
      await driver.append(runner, run, 1, 1, { type: "progress", percent: 10 });
      expect(await store.read.run(run)).toMatchObject({ status: "running", progress: 10 });
      await driver.finish(runner, run, 1);
      expect(await store.read.run(run)).toMatchObject({ status: "completed", progress: 100 });
    });

    it("keeps one active run for each session", async () => {
      const chat = createAgent("chat", { type: "autonomous", command: null });
      const first = await driver.submit({ session_id: "s" }, chat);
      const second = await driver.submit({ session_id: "s", mode: "resume" }, chat);
      const runner = await driver.register("r");
      expect(await driver.claim(runner, 5)).toEqual([first]);
      expect(await store.read.why(second)).toMatchObject([{ demand: "session" }]);
      await driver.append(runner, first, 1, 1, { type: "system", subtype: "init", executor_session_id: "theirs" });
      await driver.finish(runner, first, 1);
      const { claims } = await driver.poll(runner, 5);
      expect(claims.map(({ run_id }) => run_id)).toEqual([second]);
      expect(claims[0]?.invocation).toMatchObject({ mode: "resume", session_id: "s", executor_session_id: "theirs" });
      expect(await store.read.session("s")).toMatchObject({
        run_count: 2,
        hostname: "host",
        executor_profile: "profile",
        executor_session_id: "theirs",
      });
    });

    it("gives a runner restricted to one agent only that agent's runs, and explains it for the others", async () => {
      const [echo, other] = [await driver.submit(), await driver.submit({ priority: 9 }, createAgent("other"))];
      const restrictedRunner = await driver.register("picky", { only_agent: "echo" });
      expect(await driver.claim(restrictedRunner, 5)).toEqual([echo]);
      expect(await store.read.why(other)).toMatchObject([
        { demand: "agent", detail: expect.stringContaining("restricted to other agents: echo") },
      ]);
      expect(await store.read.runner("picky")).toMatchObject({ only_agent: "echo" });
      expect(await driver.claim(await driver.register("r"), 5)).toEqual([other]);
      expect(await store.read.runner("r")).toMatchObject({ only_agent: null });
    });

    it("sends a run that waits for a session to the runner that has it by then", async () => {
      const chat = createAgent("chat", { type: "autonomous", command: null, max_concurrent: 3 });
      const first = await driver.submit({ session_id: "s" }, chat);
      const second = await driver.submit({ session_id: "s", mode: "resume" }, chat);
      const [a, b] = [await driver.register("a"), await driver.register("b", { hostname: "elsewhere" })];
      expect(await driver.claim(a)).toEqual([first]);
      await driver.finish(a, first, 1);
      expect(await driver.claim(b)).toEqual([]);
      expect((await store.read.run(second))?.demands).toMatchObject({ runner_id: "a", hostname: "host" });
      expect(await driver.claim(a)).toEqual([second]);
    });

    it("gives nothing to a draining runner, nor while it is held", async () => {
      const run = await driver.submit();
      const runner = await driver.register("r");
      await store.apply([{ op: "drain_runner", runner_id: "r", draining: true }]);
      expect(await driver.claim(runner)).toEqual([]);
      await store.apply([{ op: "drain_runner", runner_id: "r", draining: false }]);
      const [heldClaim] = await store.apply([
        { op: "claim_runs", ...runner, claim_id: "held", want: 1, ack_order: 0, lease_ms: 1000, pause_reason: "disk" },
      ]);
      expect(heldClaim).toMatchObject({ ok: true, claims: [] });
      expect(await driver.claim(runner)).toEqual([run]);
      expect(await store.apply([{ op: "drain_runner", runner_id: "nobody", draining: true }])).toEqual([
        { ok: false, conflict: "unknown_runner" },
      ]);
    });

    it("gives each run to exactly one of many simultaneous claimers", async () => {
      const runs = new Set<string>();
      for (let i = 0; i < 200; i += 1) runs.add(await driver.submit());
      const runners = await Promise.all(Array.from({ length: 20 }, (_, i) => driver.register(`r${i}`)));
      const claimedIds: string[] = [];
      await Promise.all(
        runners.map(async (runner) => {
          for (
            let ownersOfRun = await driver.claim(runner, 3);
            ownersOfRun.length > 0;
            ownersOfRun = await driver.claim(runner, 3)
          )
            claimedIds.push(...ownersOfRun);
        }),
      );
      expect(claimedIds).toHaveLength(200);
      expect(new Set(claimedIds)).toEqual(runs);
    });
  });

  describe("fencing", () => {
    it("refuses and audits a writer that is not the run's runner in its attempt", async () => {
      const run = await driver.submit();
      const [a, b] = [await driver.register("a"), await driver.register("b")];
      expect(await driver.append(a, run, 0, 1, output("x"))).toMatchObject({ ok: false, conflict: "fenced" });
      await driver.claim(a);
      expect(await driver.append(b, run, 1, 1, output("x"))).toMatchObject({ ok: false, conflict: "fenced" });
      expect(await driver.finish(b, run, 1)).toMatchObject({ ok: false, conflict: "fenced" });
      expect(await driver.append({ ...a, epoch: a.epoch - 1 }, run, 1, 1, output("x"))).toMatchObject({
        ok: false,
        conflict: "fenced",
      });
      expect(await driver.append(a, run, 2, 1, output("x"))).toMatchObject({ ok: false, conflict: "fenced" });
      const pendingRun = await driver.submit();
      expect(await store.apply([{ op: "append_events", run_id: pendingRun, attempt: 0, events: [] }])).toMatchObject([
        { conflict: "fenced" },
      ]);
      expect(await driver.append(a, run, 1, 1, output("x"))).toEqual({ ok: true, last_n: 1 });
      expect(await store.read.run(run)).toMatchObject({ status: "running", started_at: now().toISOString() });
    });

    it("lets a runner move its run only between running and waiting", async () => {
      const run = await driver.submit();
      const runner = await driver.register("r");
      await driver.claim(runner);
      for (const status of ["pending", "claimed", "parked", "stopping", "completed"] as const) {
        await driver.append(
          runner,
          run,
          1,
          ["pending", "claimed", "parked", "stopping", "completed"].indexOf(status) + 1,
          {
            type: "status",
            status,
          },
        );
        expect(await driver.statuses(run)).toEqual(["running"]);
      }
      await driver.append(runner, run, 1, 6, { type: "status", status: "waiting", reason: "approval" });
      expect(await driver.statuses(run)).toEqual(["waiting"]);
    });

    it("accepts a finish only once everything before it is stored", async () => {
      const run = await driver.submit();
      const runner = await driver.register("r");
      await driver.claim(runner);
      expect(await driver.finish(runner, run, 1, { last_n: 2 })).toEqual({ ok: false, conflict: "gap", last_n: 0 });
      await driver.append(runner, run, 1, 1, output("1"), output("2"));
      expect(await driver.finish(runner, run, 1, { last_n: 2 })).toEqual({ ok: true, last_n: 2 });
      expect(await driver.finish(runner, run, 1, { last_n: 2 })).toEqual({ ok: true, last_n: 2, repeated: true });
      expect(await driver.append(runner, run, 1, 3, output("3"))).toMatchObject({ ok: false, conflict: "finished" });
      expect((await driver.event(run, -1))?.type).toBe("result");
    });
  });
}
