import { describe, expect, it } from "vitest";
import type { Run } from "../../src/model/run.ts";
import { allow, approval, createQuestionHelpers, chat, request } from "../fixtures/dispatch/ask.ts";
import { createAgent } from "../fixtures/dispatch/drive.ts";
import type { EachWithStore } from "./each-with-store.ts";

/** What every store must do with parked runs, which wait without a runner. */
export function describeParked(opened: EachWithStore): void {
  const { store, driver, now, advance } = opened;
  const { rescue, answer, inbox, types, createWaitingRun, createParkedRun } = createQuestionHelpers(opened);

  describe("a run that a command created for its own runner and left parked", () => {
    const commandRunnerId = "run-4711-0123abcd-profile-f00d";
    const place = { place_id: "here", executor_profile: "profile" };
    const createRunParkedByCommand = async (changes: Partial<Run> = {}) => {
      const runner = await driver.register(commandRunnerId, { ...place, only_pinned: true });
      const run_id = await driver.submit(
        { attended: true, session_id: "s", demands: { runner_id: commandRunnerId }, ...changes },
        chat,
      );
      await driver.claim(runner);
      await driver.append(runner, run_id, 1, 1, request());
      await driver.save(runner, run_id, 1, 2, "state");
      await driver.finish(runner, run_id, 1, { last_n: 2, parked: approval });
      await store.apply([{ op: "leave_runner", ...runner }]);
      expect(await driver.statuses(run_id)).toEqual(["parked"]);
      return run_id;
    };

    it("is continued by another runner of the same state directory, but not by a runner of another one", async () => {
      const run_id = await createRunParkedByCommand();
      const other = await driver.register("other", { ...place, place_id: "there" });
      const upRunner = await driver.register("up", place);
      expect(await answer(run_id)).toMatchObject({ ok: true });
      expect(await driver.claim(other)).toEqual([]);
      expect((await driver.poll(upRunner, 1)).claims).toMatchObject([
        { run_id, attempt: 2, invocation: { continues: true } },
      ]);
    });

    it("waits for a runner of the same state directory that registers after the answer", async () => {
      const run_id = await createRunParkedByCommand();
      expect(await answer(run_id)).toMatchObject({ ok: true });
      const laterRunner = await driver.register("late", { ...place, place_id: "there" });
      expect(await driver.claim(laterRunner)).toEqual([]);
      expect(await driver.claim(await driver.register("up", place))).toEqual([run_id]);
    });

    it("is continued by a command that reuses that runner's name", async () => {
      const run_id = await createRunParkedByCommand();
      expect(await answer(run_id)).toMatchObject({ ok: true });
      expect(
        await driver.claim(await driver.register(commandRunnerId, { ...place, only_pinned: true }, "another")),
      ).toEqual([run_id]);
    });

    it("stays with the runner that its caller chose, even while that runner is offline", async () => {
      const chosen = await driver.register("chosen", place);
      const run_id = await driver.submit({ attended: true, session_id: "s", demands: { runner_id: "chosen" } }, chat);
      await driver.claim(chosen);
      await driver.append(chosen, run_id, 1, 1, request());
      await driver.save(chosen, run_id, 1, 2, "state");
      await driver.finish(chosen, run_id, 1, { last_n: 2, parked: approval });
      await store.apply([{ op: "leave_runner", ...chosen }]);
      const upRunner = await driver.register("up", place);
      await answer(run_id);
      expect(await driver.claim(upRunner)).toEqual([]);
      expect(await driver.claim(await driver.register("chosen", place))).toEqual([run_id]);
    });
  });

  describe("a parked run", () => {
    it("uses no slot, and after the answer continues on its own runner first, even beyond its slots and the agent's limit, without counting a failure", async () => {
      const one = createAgent("one", { type: "autonomous", command: null, max_concurrent: 1 });
      const runner = await driver.register("r", { slots: 1 });
      const run_id = await createParkedRun(runner, one);
      expect(await store.read.run(run_id)).toMatchObject({
        status: "parked",
        parked_why: "approval",
        parked_until: null,
        runner_id: null,
      });
      expect(await driver.finish(runner, run_id, 1, { last_n: 2, parked: approval })).toMatchObject({ repeated: true });
      const next = await driver.submit({ session_id: "t" }, one);
      expect(await driver.claim(runner)).toEqual([next]);
      const other = await driver.register("other", { slots: 1 });
      const resumedDemands: unknown[] = [];
      const stop = store.changes(({ resumed = [] }) => resumedDemands.push(...resumed));
      await answer(run_id);
      stop();
      expect(resumedDemands).toHaveLength(1);
      expect(await driver.statuses(run_id)).toEqual(["pending"]);
      expect(await store.read.poller({ ...other, claim_id: "known", want: 0 })).toMatchObject({ idle: false });
      expect(await store.read.runners_with_work(["r", "other"])).toEqual(["r"]);
      expect(await driver.claim(other, 1)).toEqual([]);
      const { claims } = await driver.poll(runner, 0, "full");
      expect(claims).toMatchObject([{ run_id, attempt: 2, invocation: { mode: "start", continues: true } }]);
      expect(claims[0]?.invocation.answers).toMatchObject([{ request_id: "q", answer: allow }]);
      expect((await driver.poll(runner, 0, "full")).claims).toMatchObject([{ run_id, attempt: 2 }]);
      await driver.append(runner, run_id, 2, 1, { type: "status", status: "running" });
      expect(await store.read.run(run_id)).toMatchObject({ status: "running", failures: 0, parked_why: null });
      expect(await types(run_id)).toEqual([
        "pending",
        "claimed",
        "permission_request",
        "output",
        "parked",
        "allow",
        "pending",
        "claimed",
        "running",
      ]);
    });

    it("goes to any runner if its own does not take it", async () => {
      const runner = await driver.register("r");
      const run_id = await createParkedRun(runner);
      const other = await driver.register("other");
      await answer(run_id);
      advance(5001);
      await store.apply([{ op: "renew_idle", runner_ids: ["r", "other"], lease_ms: 10_000 }]);
      await rescue();
      expect((await driver.poll(other, 0)).claims).toMatchObject([{ run_id, invocation: { continues: true } }]);
    });

    it("is not given to a runner that is draining, short of resources or paused", async () => {
      const runner = await driver.register("r");
      await answer(await createParkedRun(runner));
      const claim = { op: "claim_runs", ...runner, want: 0, ack_order: 0, lease_ms: 10_000 } as const;
      const [claimWithShortage, pausedClaim] = await store.apply([
        { ...claim, claim_id: "short", shortage: "no descriptors" },
        { ...claim, claim_id: "paused", pause_reason: "no disk" },
      ]);
      expect([claimWithShortage, pausedClaim]).toMatchObject([{ claims: [] }, { claims: [] }]);
      await store.apply([{ op: "drain_runner", runner_id: "r", draining: true }]);
      expect((await driver.poll(runner, 0)).claims).toEqual([]);
    });

    it("continues at once if it was answered before it was parked, and fails at once if the answer was a stop", async () => {
      const runner = await driver.register("r", { slots: 9 });
      const [answered, stopped] = [await createWaitingRun(runner), await createWaitingRun(runner, chat, "t")];
      await answer(answered);
      await answer(stopped, "q", { decision: "stop" });
      for (const run_id of [answered, stopped]) await driver.finish(runner, run_id, 1, { last_n: 1, parked: approval });
      expect(await driver.statuses(answered)).toEqual(["pending"]);
      expect(await store.read.run(stopped)).toMatchObject({ status: "failed", reason: "permission_denied" });
      expect((await driver.poll(runner, 0)).claims).toMatchObject([
        { run_id: answered, invocation: { continues: true } },
      ]);
    });

    it("fails if the answer is a stop, and is cancelled if it is stopped", async () => {
      const runner = await driver.register("r");
      const [refused, stopped] = [await createParkedRun(runner), await createParkedRun(runner, chat, "t")];
      await answer(refused, "q", { decision: "stop", message: "never" });
      await store.apply([{ op: "stop_runs", run_ids: [stopped], reason: "user", by: "ann" }]);
      expect(await store.read.run(refused)).toMatchObject({ status: "failed", reason: "permission_denied" });
      expect(await driver.statuses(stopped)).toEqual(["cancelled"]);
      expect(await inbox()).toEqual([]);
    });

    it("holds up later runs of its session, but not its directory", async () => {
      const runner = await driver.register("r", { slots: 9 });
      const shared = { attended: true, project_dir: "/here" };
      const run_id = await driver.submit({ ...shared, session_id: "s" }, chat);
      await driver.claim(runner);
      const otherSessionRun = await driver.submit({ ...shared, session_id: "t" }, chat);
      const laterRun = await driver.submit({ ...shared, session_id: "s", mode: "resume" }, chat);
      expect(await driver.claim(runner, 9)).toEqual([]);
      await driver.append(runner, run_id, 1, 1, request());
      await driver.finish(runner, run_id, 1, { last_n: 1, parked: approval });
      expect(await driver.claim(runner, 9)).toEqual([otherSessionRun]);
      await answer(run_id);
      expect(await driver.claim(runner, 9)).toEqual([]);
      await driver.finish(runner, otherSessionRun, 1);
      expect(await driver.claim(runner, 9)).toEqual([run_id]);
      await driver.finish(runner, run_id, 2);
      expect(await driver.claim(runner, 9)).toEqual([laterRun]);
    });

    it("continues at `parked_until` or when a person resumes it, but not before its open question is answered", async () => {
      const runner = await driver.register("r", { slots: 9 });
      const until = new Date(now().getTime() + 60_000).toISOString();
      const runs = [];
      for (const session_id of ["a", "b"]) runs.push(await driver.submit({ session_id }, chat));
      const [timed = "", resumed = ""] = runs;
      await driver.claim(runner, 2);
      await driver.finish(runner, timed, 1, { parked: { why: "budget", until, message: "Enough." } });
      await driver.finish(runner, resumed, 1, { parked: { why: "budget" } });
      const question = await createParkedRun(runner, chat, "c");
      expect(await store.read.run(timed)).toMatchObject({ parked_until: until, waiting_for: "Enough." });
      expect(await store.read.why(timed)).toEqual([{ demand: "budget", detail: `Enough. It continues at ${until}.` }]);
      const resume = async (run_id: string) => (await store.apply([{ op: "resume_run", run_id, by: "ann" }]))[0];
      expect(await resume(question)).toMatchObject({ conflict: "wrong_state", waits_for: "answer" });
      expect(await resume("none")).toEqual({ ok: false, conflict: "not_found" });
      expect(await resume(resumed)).toMatchObject({ ok: true });
      expect(await resume(resumed)).toMatchObject({ conflict: "wrong_state", status: "pending", waits_for: null });
      expect((await driver.poll(runner, 0)).claims).toMatchObject([{ run_id: resumed }]);
      await rescue();
      expect(await driver.statuses(timed)).toEqual(["parked"]);
      advance(60_000);
      await store.apply([{ op: "renew_idle", runner_ids: ["r"], lease_ms: 10_000 }]);
      expect(await rescue()).toMatchObject([{ requeued: expect.arrayContaining([timed]) }]);
    });

    it("is resumed in batches no larger than requested", async () => {
      const runner = await driver.register("r", { slots: 9 });
      const until = new Date(now().getTime() + 1000).toISOString();
      for (const session_id of ["a", "b", "c"]) await driver.submit({ session_id }, chat);
      for (const run_id of await driver.claim(runner, 3))
        await driver.finish(runner, run_id, 1, { parked: { why: "budget", until } });
      advance(2000);
      expect(await rescue(2)).toMatchObject([{ requeued: [expect.any(String), expect.any(String)], more: true }]);
      expect(await rescue(2)).toMatchObject([{ requeued: [expect.any(String)], more: false }]);
    });
  });
}
