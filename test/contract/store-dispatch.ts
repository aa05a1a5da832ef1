import { describe, expect, it } from "vitest";
import { agentNamed, output } from "../fixtures/dispatch/drive.ts";
import { sampleRun } from "../fixtures/record/sample.ts";
import type { Change, Op } from "../../src/model/store.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";

const rescue = { op: "rescue", unmatched_ms: 300_000, limit: 100 } as const;

/** What every store must do about runners, claims and leases. */
export function storeDispatchContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the dispatch contract`, () => {
    const { store, d, now, advance } = eachWithStore(open);

    describe("claims", () => {
      it("hands out by priority, then age, and writes it into the run and its log", async () => {
        const [low, high, second] = [
          await d.submit(),
          await d.submit({ priority: 5, parameters: { a: 1 }, prompt: "p" }),
          await d.submit({ priority: 5 }),
        ];
        const runner = await d.register("r");
        const { claims } = await d.poll(runner, 2);
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
        expect(await d.event(high, 0)).toEqual({ type: "status", status: "pending" });
        expect(await d.event(high, -1)).toMatchObject({ type: "status", status: "claimed" });
        expect(await d.claim(runner, 5)).toEqual([low]);
        expect(await d.claim(runner, 5)).toEqual([]);
      });

      it("answers the same claim_id with the same claims, also once a newer one was answered", async () => {
        const [one, two] = [await d.submit(), await d.submit()];
        const runner = await d.register("r");
        expect(await d.claim(runner, 1, "a")).toEqual([one]);
        expect(await d.claim(runner, 2, "a")).toEqual([one]);
        expect(await d.claim(runner, 1, "b")).toEqual([two]);
        const three = await d.submit();
        expect(await d.claim(runner, 1, "a")).toEqual([one]);
        await d.finish(runner, one, 1);
        expect(await d.claim(runner, 1, "a")).toEqual([]);
        expect(await d.claim(runner, 0, "c")).toEqual([]);
        expect(await d.claim(runner, 1, "c")).toEqual([three]);
      });

      it("hands a late copy of a poll nothing once a report names its claim as answered", async () => {
        const first = await d.submit();
        const runner = await d.register("r");
        expect(await d.claim(runner, 1, "a")).toEqual([first]);
        await d.beat(runner, [[first, 1]], "a");
        await d.finish(runner, first, 1);
        const second = await d.submit();
        expect(await d.claim(runner, 1, "a")).toEqual([]);
        await d.beat(runner, [], "a");
        expect(await d.claim(runner, 1, "a")).toEqual([]);
        expect(await d.claim(runner, 1, "b")).toEqual([second]);
        await d.beat(runner, [[second, 1]], "b");
        await d.beat(runner, [], "a");
        expect(await store.read.run(second)).toMatchObject({ status: "claimed", attempt: 1 });
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
        for (const demands of wants) runs.push(await d.submit({ demands }));
        const plain = await d.register("r", { tags: ["a"] });
        expect(await d.claim(plain, 10)).toEqual([]);
        const other = await d.register("other", {
          hostname: "other",
          project_dir: "/other",
          executor_profile: "other",
          executor: { type: "other", config: {} },
          tags: ["b", "c", "a"],
        });
        expect(await d.claim(other, 10)).toEqual(runs);
      });

      it("gives a runner that requires matching tags no untagged run", async () => {
        const untagged = await d.submit();
        const tagged = await d.submit({ demands: { tags: ["a"] } });
        const picky = await d.register("picky", { tags: ["a"], require_matching_tags: true });
        expect(await d.claim(picky, 5)).toEqual([tagged]);
        expect(await d.claim(await d.register("r"), 5)).toEqual([untagged]);
      });

      it("lets no more runs of an agent work than it allows, and nothing wait behind them", async () => {
        const capped = agentNamed("capped", { max_concurrent: 2 });
        const runs = [];
        for (let i = 0; i < 4; i += 1) runs.push(await d.submit({ priority: 9 }, capped));
        const free = await d.submit();
        const elsewhere = await d.submit({ demands: { hostname: "host" }, priority: 9 }, capped);
        const [a, b] = [await d.register("a"), await d.register("b")];
        expect(await d.claim(a, 10)).toEqual([runs[0], runs[1], free]);
        expect(await d.claim(b, 10)).toEqual([]);
        expect((await store.read.why(runs[2]!))?.map(({ demand }) => demand)).toEqual(["max_concurrent"]);
        await d.finish(a, runs[0]!, 1);
        expect(await d.claim(b, 10)).toEqual([runs[2]]);
        await d.finish(a, runs[1]!, 1);
        await d.finish(b, runs[2]!, 1);
        expect(await d.claim(b, 10)).toEqual([runs[3], elsewhere]);
      });

      it("frees the cap and a slot while a run waits, and counts it again when it resumes", async () => {
        const capped = agentNamed("capped", { max_concurrent: 1 });
        const runs = [await d.submit({}, capped), await d.submit({}, capped), await d.submit({}, capped)];
        const [first = "", second = "", third = ""] = runs;
        const runner = await d.register("r");
        expect(await d.claim(runner, 3)).toEqual([first]);
        const begun = now().toISOString();
        await d.append(runner, first, 1, 1, output("begun"));
        const changes: Change[] = [];
        store.changes((change) => changes.push(change));
        const asks = { type: "status", status: "waiting", reason: "approval" } as const;
        await d.append(runner, first, 1, 2, asks);
        expect(changes.at(-1)?.claimable).toHaveLength(1);
        expect(await store.read.run(first)).toMatchObject({ status: "waiting", waiting_for: "approval" });
        expect(await store.read.runner("r")).toMatchObject({ running: 0 });
        expect(await d.claim(runner, 3)).toEqual([second]);
        advance(1000);
        await d.append(runner, first, 1, 3, { type: "status", status: "running" });
        expect(await store.read.run(first)).toMatchObject({ status: "running", started_at: begun, waiting_for: null });
        expect(await store.read.runner("r")).toMatchObject({ running: 2 });
        await d.finish(runner, second, 1);
        expect(await d.claim(runner, 3)).toEqual([]);
        await d.finish(runner, first, 1);
        expect(await d.claim(runner, 3)).toEqual([third]);
      });

      it("shows a run that completed as done, whatever progress it reported last", async () => {
        const run = await d.submit();
        const runner = await d.register("r");
        await d.claim(runner);
        await d.append(runner, run, 1, 1, { type: "progress", percent: 10 });
        expect(await store.read.run(run)).toMatchObject({ status: "running", progress: 10 });
        await d.finish(runner, run, 1);
        expect(await store.read.run(run)).toMatchObject({ status: "completed", progress: 100 });
      });

      it("keeps one active run for each session", async () => {
        const chat = agentNamed("chat", { type: "autonomous", command: null });
        const first = await d.submit({ session_id: "s" }, chat);
        const second = await d.submit({ session_id: "s", mode: "resume" }, chat);
        const runner = await d.register("r");
        expect(await d.claim(runner, 5)).toEqual([first]);
        expect(await store.read.why(second)).toMatchObject([{ demand: "session" }]);
        await d.append(runner, first, 1, 1, { type: "system", subtype: "init", executor_session_id: "theirs" });
        await d.finish(runner, first, 1);
        const { claims } = await d.poll(runner, 5);
        expect(claims.map(({ run_id }) => run_id)).toEqual([second]);
        expect(claims[0]?.invocation).toMatchObject({ mode: "resume", session_id: "s", executor_session_id: "theirs" });
        expect(await store.read.session("s")).toMatchObject({
          run_count: 2,
          hostname: "host",
          executor_profile: "profile",
          executor_session_id: "theirs",
        });
      });

      it("hands a runner that is there for one agent only that agent's runs, and tells the others' why", async () => {
        const [echo, other] = [await d.submit(), await d.submit({ priority: 9 }, agentNamed("other"))];
        const picky = await d.register("picky", { only_agent: "echo" });
        expect(await d.claim(picky, 5)).toEqual([echo]);
        expect(await store.read.why(other)).toMatchObject([
          { demand: "agent", detail: expect.stringContaining("restricted to other agents: echo") },
        ]);
        expect(await store.read.runner("picky")).toMatchObject({ only_agent: "echo" });
        expect(await d.claim(await d.register("r"), 5)).toEqual([other]);
        expect(await store.read.runner("r")).toMatchObject({ only_agent: null });
      });

      it("sends what waits for a session to the runner that has it by then", async () => {
        const chat = agentNamed("chat", { type: "autonomous", command: null, max_concurrent: 3 });
        const first = await d.submit({ session_id: "s" }, chat);
        const second = await d.submit({ session_id: "s", mode: "resume" }, chat);
        const [a, b] = [await d.register("a"), await d.register("b", { hostname: "elsewhere" })];
        expect(await d.claim(a)).toEqual([first]);
        await d.finish(a, first, 1);
        expect(await d.claim(b)).toEqual([]);
        expect((await store.read.run(second))?.demands).toMatchObject({ runner_id: "a", hostname: "host" });
        expect(await d.claim(a)).toEqual([second]);
      });

      it("hands nothing to a draining runner, nor while told to hold", async () => {
        const run = await d.submit();
        const runner = await d.register("r");
        await store.apply([{ op: "drain_runner", runner_id: "r", draining: true }]);
        expect(await d.claim(runner)).toEqual([]);
        await store.apply([{ op: "drain_runner", runner_id: "r", draining: false }]);
        const [held] = await store.apply([
          { op: "claim_runs", ...runner, claim_id: "held", want: 1, ack_order: 0, lease_ms: 1000, hold: "disk" },
        ]);
        expect(held).toMatchObject({ ok: true, claims: [] });
        expect(await d.claim(runner)).toEqual([run]);
        expect(await store.apply([{ op: "drain_runner", runner_id: "nobody", draining: true }])).toEqual([
          { ok: false, conflict: "unknown_runner" },
        ]);
      });

      it("gives each run to one of many who ask at once", async () => {
        const runs = new Set<string>();
        for (let i = 0; i < 200; i += 1) runs.add(await d.submit());
        const runners = await Promise.all(Array.from({ length: 20 }, (_, i) => d.register(`r${i}`)));
        const taken: string[] = [];
        await Promise.all(
          runners.map(async (runner) => {
            for (let got = await d.claim(runner, 3); got.length > 0; got = await d.claim(runner, 3)) taken.push(...got);
          }),
        );
        expect(taken).toHaveLength(200);
        expect(new Set(taken)).toEqual(runs);
      });
    });

    describe("fencing", () => {
      it("refuses who is not the run's runner in its attempt, and puts that on the record", async () => {
        const run = await d.submit();
        const [a, b] = [await d.register("a"), await d.register("b")];
        expect(await d.append(a, run, 0, 1, output("x"))).toMatchObject({ ok: false, conflict: "fenced" });
        await d.claim(a);
        expect(await d.append(b, run, 1, 1, output("x"))).toMatchObject({ ok: false, conflict: "fenced" });
        expect(await d.finish(b, run, 1)).toMatchObject({ ok: false, conflict: "fenced" });
        expect(await d.append({ ...a, epoch: a.epoch - 1 }, run, 1, 1, output("x"))).toMatchObject({
          ok: false,
          conflict: "fenced",
        });
        expect(await d.append(a, run, 2, 1, output("x"))).toMatchObject({ ok: false, conflict: "fenced" });
        const waiting = await d.submit();
        expect(await store.apply([{ op: "append_events", run_id: waiting, attempt: 0, events: [] }])).toMatchObject([
          { conflict: "fenced" },
        ]);
        expect(await d.append(a, run, 1, 1, output("x"))).toEqual({ ok: true, last_n: 1 });
        expect(await store.read.run(run)).toMatchObject({ status: "running", started_at: now().toISOString() });
      });

      it("never lets a runner move its run anywhere but between working and waiting", async () => {
        const run = await d.submit();
        const runner = await d.register("r");
        await d.claim(runner);
        for (const status of ["pending", "claimed", "parked", "stopping", "completed"] as const) {
          await d.append(
            runner,
            run,
            1,
            ["pending", "claimed", "parked", "stopping", "completed"].indexOf(status) + 1,
            { type: "status", status },
          );
          expect(await d.statuses(run)).toEqual(["running"]);
        }
        await d.append(runner, run, 1, 6, { type: "status", status: "waiting", reason: "approval" });
        expect(await d.statuses(run)).toEqual(["waiting"]);
      });

      it("takes a finish once everything before it is stored", async () => {
        const run = await d.submit();
        const runner = await d.register("r");
        await d.claim(runner);
        expect(await d.finish(runner, run, 1, { last_n: 2 })).toEqual({ ok: false, conflict: "gap", last_n: 0 });
        await d.append(runner, run, 1, 1, output("1"), output("2"));
        expect(await d.finish(runner, run, 1, { last_n: 2 })).toEqual({ ok: true, last_n: 2 });
        expect(await d.finish(runner, run, 1, { last_n: 2 })).toEqual({ ok: true, last_n: 2, repeated: true });
        expect(await d.append(runner, run, 1, 3, output("3"))).toMatchObject({ ok: false, conflict: "finished" });
        expect((await d.event(run, -1))?.type).toBe("result");
      });
    });

    describe("giving back", () => {
      it("requeues at no cost what was drained, and counts what a crash lost", async () => {
        const often = agentNamed("often", { max_attempts: 2 });
        const run = await d.submit({}, often);
        const runner = await d.register("r");
        const lost = {
          type: "result",
          status: "failed",
          reason: "runner_lost",
          error: "died",
          exit_code: null,
          result_text: null,
          result_data: null,
        } as const;
        await d.claim(runner);
        await d.append(runner, run, 1, 1, output("1"));
        expect(await d.finish(runner, run, 1, { give_back: "at_no_cost" })).toEqual({ ok: true, last_n: 1 });
        expect(await d.finish(runner, run, 1, { give_back: "at_no_cost" })).toEqual({
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
        await d.claim(runner);
        await d.finish(runner, run, 2, { give_back: "as_failure", result: lost });
        expect(await store.read.run(run)).toMatchObject({ status: "pending", failures: 1 });
        await d.claim(runner);
        await d.finish(runner, run, 3, { give_back: "as_failure", result: lost });
        expect(await store.read.run(run)).toMatchObject({
          status: "failed",
          reason: "runner_lost",
          failures: 2,
          attempt: 3,
        });
        expect((await store.read.events(run, 0, 100)).map(({ seq }) => seq)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
      });

      it("requeues what never arrived, and only that", async () => {
        const [one, two, three] = [await d.submit(), await d.submit(), await d.submit()];
        const runner = await d.register("r");
        await d.claim(runner, 1, "a");
        await d.claim(runner, 1, "b");
        // Made before b was answered: says nothing about it.
        expect(await d.beat(runner, [[one, 1]], "a")).toMatchObject({ ok: true, requeued: [], fenced: [] });
        expect(await d.beat(runner, [[one, 1]], "unknown")).toMatchObject({ ok: true, requeued: [] });
        await d.claim(runner, 1, "c");
        expect(await d.beat(runner, [[one, 1]], "b")).toMatchObject({ ok: true, requeued: [two] });
        expect(await d.statuses(one, two, three)).toEqual(["claimed", "pending", "claimed"]);
        expect(await store.read.run(two)).toMatchObject({ failures: 0, attempt: 1 });
        expect(
          await d.beat(
            runner,
            [
              [one, 1],
              [two, 1],
            ],
            "b",
          ),
        ).toMatchObject({ fenced: [[two, 1]], abandon: [[two, 1]] });
      });

      it("counts it where a runner forgot what it had begun", async () => {
        const run = await d.submit();
        const runner = await d.register("r");
        await d.claim(runner);
        await d.append(runner, run, 1, 1, output("begun"));
        const again = await d.register("r");
        expect(await d.beat(again, [], null)).toMatchObject({ ok: true, requeued: [] });
        expect(await store.read.run(run)).toMatchObject({ status: "failed", reason: "runner_lost" });
      });

      it("lets a runner that restarted go on with what it held", async () => {
        const run = await d.submit();
        const before = await d.register("r");
        await d.claim(before);
        const after = await d.register("r");
        expect(after.epoch).toBeGreaterThan(before.epoch);
        expect(await d.beat(before, [[run, 1]], null)).toEqual({ ok: false, conflict: "old_epoch" });
        expect(await d.beat(after, [[run, 1]], null)).toMatchObject({ ok: true, requeued: [], fenced: [] });
        expect(await d.append(after, run, 1, 1, output("1"))).toEqual({ ok: true, last_n: 1 });
      });

      it("takes back what a runner still held when it left", async () => {
        const run = await d.submit({}, agentNamed("own"));
        const runner = await d.register("r", { agents: [agentNamed("own")] });
        await d.claim(runner);
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
      it("loses a runner whose lease ran out, and its runs by what attempts they have", async () => {
        const once = await d.submit();
        const twice = await d.submit({}, agentNamed("twice", { max_attempts: 2 }));
        const runner = await d.register("r");
        await d.claim(runner, 5);
        advance(9_999);
        expect(await store.apply([rescue])).toMatchObject([{ lost_runners: [], requeued: [], failed: [] }]);
        await d.beat(
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
        expect((await d.event(once, -1))?.type).toBe("result");
        expect(await d.append(runner, twice, 1, 1, output("late"))).toMatchObject({ conflict: "fenced" });
        expect(await d.append(runner, once, 1, 1, output("late"))).toMatchObject({ ok: false });
        expect(await d.beat(runner, [], null)).toEqual({ ok: false, conflict: "unknown_runner" });
        expect(await store.read.runner("r")).toMatchObject({ status: "lost" });
      });

      it("loses a runner only where the process that judges has listened for a whole lease", async () => {
        const run = await d.submit();
        const [silent, heard] = [await d.register("silent"), await d.register("heard")];
        await d.claim(silent);
        const judge = async (before?: { since: number; at: number }) => {
          await d.beat(heard, [], null);
          const listening = { lease_ms: 10_000, ...(before ? { before } : {}) };
          const [rescued] = await store.apply([{ ...rescue, listening }]);
          if (!rescued.ok) throw new Error("rescue has no conflicts");
          return rescued;
        };
        // each began a moment ago
        for (let process = 0; process < 6; process += 1) {
          advance(4000);
          expect(await judge()).toMatchObject({ lost_runners: [], failed: [] });
        }
        let before = await judge();
        advance(5001);
        // it stood still for more than half a lease
        before = await judge(before);
        const since = before.at;
        for (let at = 0; at < 2; at += 1) {
          advance(5000 - at);
          before = await judge(before);
          expect(before).toMatchObject({ since, lost_runners: [] });
        }
        expect((await d.append(silent, run, 1, 1, output("1"))).ok).toBe(true);
        advance(1);
        expect(await judge(before)).toMatchObject({ since, lost_runners: ["silent"], failed: [run] });
      });

      it("fails no unmatched run before the process that judges has listened for as long as it may wait", async () => {
        const run = await d.submit({ demands: { tags: ["gpu"] } });
        advance(600_000);
        const at = now().getTime();
        const judge = (since: number) =>
          store.apply([{ ...rescue, listening: { lease_ms: 10_000, before: { since, at } } }]);
        expect(await judge(at - 299_999)).toMatchObject([{ failed: [] }]);
        expect(await judge(at - 300_000)).toMatchObject([{ failed: [run] }]);
      });

      it("takes a held poll for a sign of life of an idle runner alone", async () => {
        await d.submit();
        const [runner, other] = [await d.register("r"), await d.register("other")];
        const again = (claim_id: string) =>
          store.apply([
            { op: "claim_runs", ...runner, claim_id, want: 0, ack_order: 0, lease_ms: 10_000, again: true },
          ]);
        const renew = () => store.apply([{ op: "renew_idle", runner_ids: ["r", "other", "nobody"], lease_ms: 10_000 }]);
        await d.claim(runner, 0, "idle");
        advance(8_000);
        await renew();
        advance(8_000);
        expect(await store.apply([rescue])).toMatchObject([{ lost_runners: [] }]);
        await d.claim(runner, 1, "busy");
        advance(8_000);
        await again("busy");
        await renew();
        advance(8_000);
        expect(await store.apply([rescue])).toMatchObject([{ lost_runners: ["r"] }]);
        await renew();
        expect((await store.read.runner("r"))?.status).toBe("lost");
        expect((await store.read.runner(other.runner_id))?.status).toBe("online");
      });

      it("renews however many wait", async () => {
        const names = Array.from({ length: 250 }, (_, index) => `r${index}`);
        await Promise.all(names.map((name) => d.register(name)));
        advance(8_000);
        await store.apply([{ op: "renew_idle", runner_ids: names, lease_ms: 10_000 }]);
        advance(8_000);
        expect(await store.apply([rescue])).toMatchObject([{ lost_runners: [] }]);
      });

      it("refuses a second live runner, another's id, and lets a successor take over", async () => {
        const run = await d.submit();
        const runner = await d.register("r");
        await d.claim(runner);
        await expect(d.register("r", {}, "another key")).rejects.toThrow("duplicate_runner");
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
        const stolen = await store.apply([
          { op: "register_runner", runner_id: "r", key_hash: "key", owner: "eve", registration, lease_ms: 1000 },
        ]);
        expect(stolen).toEqual([{ ok: false, conflict: "duplicate_runner" }]);
        // its lease is over, but nobody has judged that: it may only not have been heard
        await expect(d.register("r", {}, "another key")).rejects.toThrow("duplicate_runner");
        await store.apply([rescue]);
        await d.register("r", {}, "another key");
        expect(await d.statuses(run)).toEqual(["failed"]);
        expect(await d.beat(runner, [], null)).toEqual({ ok: false, conflict: "old_epoch" });
        expect(
          await store.apply([{ op: "heartbeat", ...runner, owner: "eve", held: [], as_of_claim: null, lease_ms: 1 }]),
        ).toEqual([{ ok: false, conflict: "unknown_runner" }]);
      });

      it("fails what no runner can take, and only once it has waited", async () => {
        const runner = await d.register("r");
        const fits = await d.submit();
        const never = await d.submit({ demands: { tags: ["gpu"] } });
        advance(299_000);
        await d.beat(runner, [], null);
        const young = await d.submit({ demands: { tags: ["gpu"] } });
        expect(await store.apply([rescue])).toMatchObject([{ failed: [] }]);
        advance(2_000);
        await d.beat(runner, [], null);
        expect(await store.apply([rescue])).toMatchObject([{ failed: [never] }]);
        expect(await store.read.run(never)).toMatchObject({ status: "failed", reason: "no_matching_runner" });
        advance(299_000);
        await d.beat(runner, [], null);
        expect(await store.apply([rescue])).toMatchObject([{ failed: [young] }]);
        expect(await d.statuses(fits)).toEqual(["pending"]);
      });

      it("counts from when the last runner that could take it went", async () => {
        const runner = await d.register("r");
        const run = await d.submit();
        advance(1_000_000);
        await d.beat(runner, [], null);
        await store.apply([{ op: "leave_runner", ...runner }]);
        advance(299_000);
        expect(await store.apply([rescue])).toMatchObject([{ failed: [] }]);
        advance(2_000);
        expect(await store.apply([rescue])).toMatchObject([{ failed: [run] }]);
      });

      it("does a little at a time where there is much to rescue", async () => {
        for (let i = 0; i < 7; i += 1) await d.submit();
        await d.claim(await d.register("r"), 7);
        advance(10_001);
        const some = { ...rescue, limit: 3 };
        const failed = [];
        for (let more = true; more;) {
          const [result] = await store.apply([some]);
          if (!result.ok) throw new Error(result.conflict);
          expect(result.failed.length).toBeLessThanOrEqual(3);
          failed.push(...result.failed);
          more = result.more;
        }
        expect(failed).toHaveLength(7);
      });
    });

    describe("stopping", () => {
      it("cancels what waits, orders the end of what runs, and leaves the rest", async () => {
        const [first, second, done] = [await d.submit(), await d.submit(), await d.submit({ priority: 1 })];
        const runner = await d.register("r");
        await d.claim(runner);
        await d.finish(runner, done, 1);
        await d.claim(runner);
        const stop = {
          op: "stop_runs",
          run_ids: [first, second, done, "none"],
          reason: "user",
          by: "ann",
        } satisfies Op;
        expect(await store.apply([stop])).toEqual([
          {
            ok: true,
            op: "stop_runs",
            cancelled: [second],
            stopping: [first],
            untouched: [done, "none"],
            runners: ["r"],
          },
        ]);
        expect(await store.read.run(second)).toMatchObject({ status: "cancelled", reason: null });
        const { orders } = await d.poll(runner, 1, "x");
        expect(orders).toEqual([{ no: 1, run_id: first, attempt: 1, stop: "user" }]);
        expect((await d.poll(runner, 1, "y")).orders).toEqual(orders);
        expect((await d.poll(runner, 1, "z", 1)).orders).toEqual([]);
        await d.finish(runner, first, 1, {
          result: {
            type: "result",
            status: "cancelled",
            reason: null,
            error: null,
            exit_code: null,
            result_text: null,
            result_data: null,
          },
        });
        expect(await d.statuses(first)).toEqual(["cancelled"]);
      });

      it("ends a stop whose runner is gone, in place of putting the run back", async () => {
        const often = agentNamed("often", { max_attempts: 5 });
        const runs = [];
        for (let i = 0; i < 3; i += 1) runs.push(await d.submit({}, often));
        const [a, b, c] = [await d.register("a"), await d.register("b"), await d.register("c")];
        for (const runner of [a, b, c]) await d.claim(runner);
        await store.apply([{ op: "stop_runs", run_ids: runs, reason: "user", by: "ann" }]);
        await d.finish(a, runs[0]!, 1, { give_back: "at_no_cost" });
        await store.apply([{ op: "leave_runner", ...b }]);
        advance(10_001);
        await store.apply([rescue]);
        expect(await d.statuses(...runs)).toEqual(["cancelled", "cancelled", "cancelled"]);
      });

      it("forgets an order with the attempt it was for", async () => {
        const run = await d.submit({}, agentNamed("often", { max_attempts: 5 }));
        const runner = await d.register("r");
        await d.claim(runner);
        await store.apply([{ op: "stop_runs", run_ids: [run], reason: "user", by: "ann" }]);
        await d.finish(runner, run, 1);
        expect((await d.poll(runner, 1)).orders).toEqual([]);
      });
    });

    describe("submits", () => {
      it("knows a key again, and refuses it for something else", async () => {
        const key = { subject: "ann", key: "k", fingerprint: "f" };
        const run = await d.submit({}, agentNamed("echo"), { idempotency: key });
        const again = (idempotency: typeof key) => d.submit({}, agentNamed("echo"), { idempotency });
        await again(key);
        await expect(again({ ...key, fingerprint: "other" })).rejects.toThrow("idempotency");
        await again({ ...key, subject: "bob" });
        expect((await store.read.runs({}, { limit: 10 })).length).toBe(2);
        const [repeated] = await store.apply([
          {
            op: "create_run",
            run: { ...(await store.read.run(run))!, run_id: "x" },
            events: [],
            agent: agentNamed("echo"),
            idempotency: key,
          },
        ]);
        expect(repeated).toMatchObject({ ok: true, repeated: true, run_id: run });
      });

      it("stores many of all kinds that come at once, each as it was", async () => {
        const agents = [agentNamed("echo"), agentNamed("chat", { type: "autonomous", command: null })];
        const odd = ["", "null", '"', "\\", '{"a",b}', "a,b", "a\0b", "\ud800", "😀", "\n\r\t", "'; drop table runs"];
        const made = odd.flatMap((text, index) =>
          agents.map((agent, kind) => {
            const more = { idempotency: { subject: text, key: `${text} ${kind}`, fingerprint: text } };
            const run = sampleRun({
              session_id: index % 3 === 0 ? null : `${text} session ${index} ${kind}`,
              status: "pending",
              attempt: 0,
              started_at: null,
              agent_name: agent.name,
              created_at: now().toISOString(),
              prompt: kind === 0 ? null : text,
              parameters: index % 2 === 0 ? {} : { [text]: text },
              priority: index % 2,
              task_id: index % 4 === 0 ? text : null,
              project_dir: text,
            });
            return { agent, run, more };
          }),
        );
        const submitAll = () => Promise.all(made.map(({ agent, run, more }) => d.submit(run, agent, more)));
        await submitAll();
        for (const { run, agent } of made) {
          expect(await store.read.run(run.run_id)).toEqual(run);
          expect(await d.event(run.run_id, -1)).toEqual({ type: "status", status: "pending" });
          if (run.session_id === null) continue;
          expect(await store.read.session(run.session_id)).toMatchObject({
            executor_session_id: agent.type === "procedural" ? run.session_id : null,
            agent_name: agent.name,
            project_dir: run.project_dir,
            run_count: 1,
            created_at: run.created_at,
          });
        }
        await submitAll();
        expect(await store.read.runs({}, { limit: 100 })).toHaveLength(made.length);
      });

      it("keeps the agent a run was submitted with", async () => {
        const before = agentNamed("echo", { description: "before" });
        const run = await d.submit({}, before, { timeout_seconds: 7 });
        await store.apply([{ op: "put_agent", agent: agentNamed("echo", { description: "after" }), by: "ann" }]);
        const { claims } = await d.poll(await d.register("r"), 1);
        expect(claims[0]).toMatchObject({
          timeout_seconds: 7,
          invocation: { agent: { description: "before", timeout_seconds: 7 } },
        });
        expect(await store.read.agent_of(run)).toMatchObject({ agent: before, timeout_seconds: 7 });
      });

      it("makes a session with each start, which a procedural run binds to itself", async () => {
        await d.submit({ session_id: "p", created_by: "ann" });
        await d.submit(
          { session_id: "q", created_by: "bob" },
          agentNamed("chat", { type: "autonomous", command: null }),
        );
        expect(await store.read.session("p")).toMatchObject({
          executor_session_id: "p",
          run_count: 1,
          agent_name: "echo",
          created_by: "ann",
        });
        const bind = (executor_session_id: string, session_id = "q") =>
          store.apply([{ op: "bind_session", session_id, executor_session_id }]);
        expect(await bind("x")).toEqual([{ ok: true, op: "bind_session" }]);
        expect(await bind("x")).toEqual([{ ok: true, op: "bind_session" }]);
        expect(await bind("y")).toEqual([{ ok: false, conflict: "bound_otherwise" }]);
        expect(await bind("y", "none")).toEqual([{ ok: false, conflict: "not_found" }]);
        expect((await store.read.sessions({}, { limit: 5 })).map(({ session_id }) => session_id)).toEqual(["q", "p"]);
        expect(
          (await store.read.sessions({ created_by: "ann" }, { limit: 5 })).map(({ session_id }) => session_id),
        ).toEqual(["p"]);
        expect((await store.read.sessions({}, { limit: 5, before: "q" })).map(({ session_id }) => session_id)).toEqual([
          "p",
        ]);
      });
    });

    it("tells after each commit what somebody may wait for", async () => {
      const changes: Change[] = [];
      const stop = store.changes((change) => changes.push(change));
      const run = await d.submit({ demands: { tags: ["a"] } });
      expect(changes.at(-1)).toEqual({
        runs: new Set([run]),
        claimable: [{ tags: ["a"] }],
        ordered: new Set(),
        foreign: false,
      });
      const runner = await d.register("r", { tags: ["a"] });
      await d.claim(runner);
      await store.apply([{ op: "stop_runs", run_ids: [run], reason: "user", by: "ann" }]);
      expect(changes.at(-1)).toMatchObject({ ordered: new Set(["r"]), runs: new Set([run]) });
      stop();
      const told = changes.length;
      await d.submit();
      expect(changes).toHaveLength(told);
    });

    describe("why", () => {
      const why = async (run_id: string) =>
        (await store.read.why(run_id))?.map(({ demand, detail }) => `${demand}: ${detail}`).join("\n");

      it("names what is missing", async () => {
        const run = await d.submit({ demands: { hostname: "big", tags: ["gpu", "cuda"] } });
        expect(await why(run)).toContain("agent: No runner is online");
        await d.register("r");
        expect(await why(run)).toContain("hostname: No online runner has hostname big");
        await d.register("b", { hostname: "big", tags: ["gpu"] });
        expect(await why(run)).toContain("tags: No online runner has the tags cuda");
        await d.register("c", { hostname: "big", tags: ["cuda"] });
        expect(await why(run)).toContain("No single online runner has all");
        const full = await d.register("d", { hostname: "big", tags: ["cuda", "gpu"], slots: 1 });
        expect(await why(run)).toBe("");
        await d.submit({ priority: 9, demands: { runner_id: "d" } });
        await d.claim(full);
        expect(await why(run)).toContain("slots: All slots are busy");
        await store.apply([{ op: "drain_runner", runner_id: "d", draining: true }]);
        expect(await why(run)).toContain("slots: Every runner that could take it is draining");
        const pinned = await d.submit({ demands: { runner_id: "gone" } });
        expect(await why(pinned)).toContain("runner_id: Runner gone is offline");
        expect(await store.read.why("none")).toBeNull();
      });
    });

    describe("tokens", () => {
      const token = {
        token_id: "t1",
        kind: "access",
        role: "user",
        subject: "ann",
        label: null,
        created_by: "root",
        created_at: "2026-01-01T00:00:00.000Z",
        expires_at: null,
        revoked_at: null,
        used_at: null,
      } as const;

      it("keeps them by hash, and the first time they were revoked", async () => {
        expect(await store.apply([{ op: "put_token", token, hash: "h1" }])).toEqual([{ ok: true, op: "put_token" }]);
        expect(await store.apply([{ op: "put_token", token: { ...token, token_id: "t2" }, hash: "h1" }])).toEqual([
          { ok: false, conflict: "exists" },
        ]);
        expect(await store.apply([{ op: "put_token", token, hash: "h2" }])).toEqual([
          { ok: false, conflict: "exists" },
        ]);
        expect(await store.read.token("h1")).toEqual(token);
        expect(await store.read.token("h2")).toBeNull();
        for (const at of ["2026-02-01", "2026-03-01"]) await store.apply([{ op: "revoke_token", token_id: "t1", at }]);
        expect(await store.read.tokens({ limit: 5 })).toEqual([{ ...token, revoked_at: "2026-02-01" }]);
        expect(await store.apply([{ op: "revoke_token", token_id: "t9", at: "x" }])).toEqual([
          { ok: false, conflict: "not_found" },
        ]);
      });

      it("ends one that was to end later at once", async () => {
        await store.apply([{ op: "put_token", token, hash: "h1" }]);
        for (const at of ["2026-03-01", "2026-02-01"]) await store.apply([{ op: "revoke_token", token_id: "t1", at }]);
        expect((await store.read.token("h1"))?.revoked_at).toBe("2026-02-01");
      });

      it("puts one in the place of another, which ends a while later, and never later than it was to", async () => {
        const old = { ...token, label: "laptop", expires_at: "2026-09-01" };
        await store.apply([{ op: "put_token", token: old, hash: "h1" }]);
        const rotate = async (token_id: string, at: string, ends_at: string, made = token_id) => {
          const wanted = { ...token, token_id: `${made} next`, role: "admin", subject: "eve", label: null } as const;
          const next = { token: wanted, token_hash: `hash of ${made} next` };
          return (await store.apply([{ op: "rotate_token", token_id, at, ends_at, ...next }]))[0];
        };
        expect(await rotate("t1", "2026-02-01", "2026-02-03")).toEqual({
          ok: true,
          op: "rotate_token",
          ends_at: "2026-02-03",
        });
        expect(await store.read.token("hash of t1 next")).toEqual({ ...token, token_id: "t1 next", label: "laptop" });
        expect(await store.read.token("h1")).toEqual({ ...old, revoked_at: "2026-02-03" });
        // known by its id: neither is the new one stored, nor the old one's end another
        expect(await rotate("t1", "2026-02-01", "2026-02-02")).toEqual({ ok: false, conflict: "exists" });
        expect((await store.read.token("h1"))?.revoked_at).toBe("2026-02-03");
        expect(await rotate("t1", "2026-02-01", "2026-02-09", "again")).toMatchObject({ ends_at: "2026-02-03" });
        expect(await rotate("t1", "2026-02-03", "2026-02-09", "late")).toEqual({ ok: false, conflict: "revoked" });
        expect(await store.read.token("hash of late next")).toBeNull();
      });

      it("puts nothing in the place of what has ended, is not there, or is used once", async () => {
        const expiring = { ...token, expires_at: "2026-06-01" };
        const enrolment = { ...token, token_id: "e", kind: "enrolment", role: "runner" } as const;
        await store.apply([
          { op: "put_token", token: expiring, hash: "h1" },
          { op: "put_token", token: enrolment, hash: "e" },
        ]);
        const rotate = async (token_id: string) => {
          const next = { token: { ...token, token_id: "n" }, token_hash: "hash of n" };
          const times = { at: "2026-06-01", ends_at: "2026-07-01" };
          return (await store.apply([{ op: "rotate_token", token_id, ...times, ...next }]))[0];
        };
        expect(await rotate("t1")).toEqual({ ok: false, conflict: "expired" });
        expect(await rotate("e")).toEqual({ ok: false, conflict: "not_found" });
        expect(await rotate("t9")).toEqual({ ok: false, conflict: "not_found" });
        expect(await store.read.token("hash of n")).toBeNull();
        expect(await store.read.token("h1")).toEqual(expiring);
      });

      it("ends everything a subject has at the moment, of the roles that are meant", async () => {
        const of = (token_id: string, more: object = {}) =>
          ({ op: "put_token", token: { ...token, token_id, ...more }, hash: `hash of ${token_id}` }) as const;
        await store.apply([
          of("a"),
          of("b", { role: "viewer" }),
          of("c", { role: "runner", kind: "enrolment" }),
          of("d", { subject: "bob" }),
          of("e", { revoked_at: "2026-01-01T00:00:00.000Z" }),
          of("f", { expires_at: "2025-12-31T00:00:00.000Z" }),
          of("g", { revoked_at: "2026-01-09T00:00:00.000Z" }),
        ]);
        // one store's time judges, and it stands at the first of January
        const ends = now().toISOString();
        const at = "2026-01-05T00:00:00.000Z";
        expect(await store.apply([{ op: "revoke_subject", subject: "ann", roles: ["user", "viewer"], at }])).toEqual([
          { ok: true, op: "revoke_subject", token_ids: ["a", "b", "g"] },
        ]);
        const ended = (await store.read.tokens({ limit: 9 })).filter(({ revoked_at }) => revoked_at === ends);
        expect(ended.map(({ token_id }) => token_id).sort()).toEqual(["a", "b", "e", "g"]);
        const all = { subject: "ann", roles: ["admin", "user", "viewer", "runner"] } as const;
        expect(await store.apply([{ op: "revoke_subject", ...all, at }])).toEqual([
          { ok: true, op: "revoke_subject", token_ids: ["c"] },
        ]);
        expect(await store.read.token("hash of d")).toMatchObject({ revoked_at: null });
      });

      it("makes no token of one that was ended with its subject, however slow the clock of whoever asks is", async () => {
        const enrolment = { ...token, token_id: "e", kind: "enrolment", role: "runner" } as const;
        await store.apply([
          { op: "put_token", token, hash: "h1" },
          { op: "put_token", token: enrolment, hash: "e" },
        ]);
        const slow = { at: "2025-12-24T00:00:00.000Z", ends_at: "2025-12-25T00:00:00.000Z" };
        const made = (token_id: string) => ({ token: { ...token, token_id }, token_hash: `hash of ${token_id}` });
        const fast = "2026-02-01T00:00:00.000Z";
        const [rotated, revoked, again, exchanged] = await store.apply([
          { op: "rotate_token", token_id: "t1", ...slow, ends_at: fast, ...made("n1") },
          { op: "revoke_subject", subject: "ann", roles: ["user", "runner"], at: fast },
          { op: "rotate_token", token_id: "n1", ...slow, ...made("n2") },
          { op: "use_enrolment", hash: "e", at: slow.at, ...made("n3") },
        ]);
        expect(rotated.ok).toBe(true);
        expect(revoked).toMatchObject({ token_ids: ["e", "n1", "t1"] });
        for (const refused of [again, exchanged]) expect(refused).toEqual({ ok: false, conflict: "revoked" });
        expect(await store.read.tokens({ limit: 9 })).toHaveLength(3);
      });

      it("exchanges an enrolment once, for a token of its own role and subject", async () => {
        const enrolment = {
          ...token,
          token_id: "e",
          kind: "enrolment",
          role: "runner",
          subject: "farm",
          expires_at: "2026-06-01",
        } as const;
        await store.apply([
          { op: "put_token", token: enrolment, hash: "e" },
          { op: "put_token", token, hash: "h1" },
        ]);
        const use = (hash: string, at: string, token_id = "n") =>
          store.apply([
            {
              op: "use_enrolment",
              hash,
              at,
              token: { ...token, token_id, role: "admin", subject: "eve" },
              token_hash: `hash of ${token_id}`,
            },
          ]);
        expect(await use("h1", "2026-01-02")).toEqual([{ ok: false, conflict: "not_found" }]);
        expect(await use("e", "2026-06-01")).toEqual([{ ok: false, conflict: "expired" }]);
        expect(await use("e", "2026-01-02")).toEqual([{ ok: true, op: "use_enrolment", subject: "farm" }]);
        expect(await store.read.token("hash of n")).toMatchObject({ role: "runner", subject: "farm", kind: "access" });
        expect(await use("e", "2026-01-02", "m")).toEqual([{ ok: false, conflict: "used" }]);
        expect(await store.read.token("hash of m")).toBeNull();
      });
    });
  });
}
