import { describe, expect, it } from "vitest";
import { createAgent } from "../fixtures/dispatch/drive.ts";
import { buildFinish } from "../fixtures/record/sample.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";

const chat = createAgent("chat", { type: "autonomous", command: null });
const init = (executor_session_id: string) => ({ type: "system", subtype: "init", executor_session_id }) as const;

/** What every store must do about sessions: resume, fork, delete. */
export function storeSessionContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the session contract`, () => {
    const { store, driver, advance } = eachWithStore(open);
    const rescue = (unmatched_ms = 1e9) => store.apply([{ op: "rescue", unmatched_ms, limit: 100 }]);
    const loseRunners = async () => {
      advance(10_001);
      await rescue();
    };

    it("gives a fork the executor's id of the source session, as it is once the source has no active run", async () => {
      const first = await driver.submit({ session_id: "s" }, chat);
      const runner = await driver.register("r");
      await driver.claim(runner);
      const fork = await driver.submit({ session_id: "f", forked_from: "s", mode: "fork" }, chat);
      expect(await store.read.why(fork)).toEqual([
        { demand: "session", detail: "An earlier run of the session it was forked from has not ended." },
      ]);
      expect(await driver.claim(runner, 5)).toEqual([]);
      await driver.append(runner, first, 1, 1, init("theirs"));
      await driver.finish(runner, first, 1, { last_n: 1 });
      const { claims } = await driver.poll(runner, 5);
      expect(claims.map(({ invocation }) => invocation)).toMatchObject([
        { run_id: fork, session_id: "f", forked_from: "s", executor_session_id: "theirs" },
      ]);
      await driver.append(runner, fork, 1, 1, init("forked"));
      await driver.finish(runner, fork, 1, { last_n: 1 });
      const resumedRun = await driver.submit({ session_id: "f", mode: "resume" }, chat);
      expect((await driver.poll(runner, 5)).claims[0]?.invocation).toMatchObject({
        run_id: resumedRun,
        forked_from: null,
        executor_session_id: "forked",
      });
      expect(await store.read.session("f")).toMatchObject({
        forked_from: "s",
        runner_id: "r",
        executor_session_id: "forked",
      });
      expect(await store.read.session("s")).toMatchObject({ forked_from: null, executor_session_id: "theirs" });
      expect(await store.read.versions("f")).toEqual([
        { run_id: resumedRun, mode: "resume", status: "claimed", parent: fork, executor_session_id: null },
        { run_id: fork, mode: "fork", status: "completed", parent: first, executor_session_id: "forked" },
      ]);
    });

    describe("runs of several sessions that end in one report", () => {
      const sessions = ["a", "b", "c", "d"];
      const begin = async () => {
        const runner = await driver.register("r", { slots: 9 });
        const firsts: string[] = [];
        const nexts: string[] = [];
        for (const session_id of sessions) {
          firsts.push(await driver.submit({ session_id }, chat));
          nexts.push(await driver.submit({ session_id, mode: "resume" }, chat));
        }
        expect(await driver.claim(runner, 9)).toEqual(firsts);
        const finishes = firsts.map((run_id) => ({ ...buildFinish(run_id), attempt: 1, runner, isolation: null }));
        return { runner, firsts, nexts, finishes };
      };

      it("each release their own next run, all to the runner that has the sessions", async () => {
        const { runner, nexts, finishes } = await begin();
        const results = await store.apply(finishes);
        expect(results.map(({ ok }) => ok)).toEqual(sessions.map(() => true));
        expect(await driver.claim(runner, 9)).toEqual(nexts);
      });

      it("have not ended, any of them, if one cannot be stored", async () => {
        const { runner, firsts, nexts, finishes } = await begin();
        const other = await driver.submit();
        await driver.claim(runner, 9);
        const bad = buildFinish(other).result;
        const events = [{ n: 1, at: new Date().toISOString(), event: bad }];
        const ops = [{ op: "append_events", run_id: other, attempt: 1, runner, events } as const, ...finishes];
        await expect(store.apply(ops)).rejects.toThrow("finish_run");
        expect(await driver.statuses(...firsts)).toEqual(firsts.map(() => "claimed"));
        expect(await driver.claim(runner, 9)).toEqual([]);
        await store.apply(finishes);
        expect(await driver.claim(runner, 9)).toEqual(nexts);
      });
    });

    it("releases forks and resumes of a session in the order they were requested", async () => {
      const runner = await driver.register("r", { slots: 9 });
      const fork = (session_id: string) => driver.submit({ session_id, forked_from: "s", mode: "fork" }, chat);
      const resume = (session_id = "s") => driver.submit({ session_id, mode: "resume" }, chat);
      const first = await driver.submit({ session_id: "s" }, chat);
      await driver.claim(runner);
      const requestedBefore = [await fork("f1"), await fork("f2"), await resume()];
      const requestedAfter = [await fork("f3"), await resume()];
      const ofFork = await resume("f1");
      const announcements: number[] = [];
      const unsubscribe = store.changes(({ claimable }) => announcements.push(claimable.length));
      await driver.finish(runner, first, 1, { give_back: "at_no_cost" });
      expect(await driver.claim(runner, 5)).toEqual([first]);
      await driver.finish(runner, first, 2);
      expect(announcements.at(-1)).toBe(3);
      unsubscribe();
      expect(await driver.claim(runner, 5)).toEqual(requestedBefore);
      await driver.finish(runner, requestedBefore[1]!, 1);
      expect(await driver.claim(runner, 5)).toEqual([]);
      await driver.finish(runner, requestedBefore[2]!, 1);
      expect(await driver.claim(runner, 5)).toEqual(requestedAfter);
      await driver.finish(runner, requestedBefore[0]!, 1);
      expect(await driver.claim(runner, 5)).toEqual([ofFork]);
    });

    it("releases what waits for a blocked fork when that is stopped, and not sooner", async () => {
      const runner = await driver.register("r", { slots: 9 });
      const stop = (...run_ids: string[]) => store.apply([{ op: "stop_runs", run_ids, reason: "user", by: "ann" }]);
      await driver.submit({ session_id: "s" }, chat);
      await driver.claim(runner);
      const fork = await driver.submit({ session_id: "f", forked_from: "s", mode: "fork" }, chat);
      const blockedRuns = [];
      for (const _ of "ab") blockedRuns.push(await driver.submit({ session_id: "f", mode: "resume" }, chat));
      const further = await driver.submit({ session_id: "s", mode: "resume" }, chat);
      await stop(blockedRuns[0]!);
      expect(await driver.claim(runner, 5)).toEqual([]);
      await stop(fork);
      expect(await driver.claim(runner, 5)).toEqual([blockedRuns[1]]);
      expect(await driver.statuses(further)).toEqual(["pending"]);
    });

    it("uses the run's directory as the session's, and none for a run without", async () => {
      await driver.submit({ session_id: "s" }, chat);
      await driver.submit({ session_id: "p", project_dir: "/p" }, chat);
      await driver.claim(await driver.register("r"), 5);
      expect(await store.read.session("s")).toMatchObject({ project_dir: null, hostname: "host", runner_id: "r" });
      expect(await store.read.session("p")).toMatchObject({ project_dir: "/p" });
    });

    it("continues a session on any runner of the same state directory and profile, in its original directory", async () => {
      const place_id = "the place";
      const inPlace = createAgent("chat", { type: "autonomous", command: null, workspace: "in_place" });
      await driver.submit({ session_id: "s" }, inPlace);
      const next = await driver.submit({ session_id: "s", mode: "resume" }, inPlace);
      const first = await driver.register("first", { place_id, project_dir: "/begun/here" });
      const [firstRun = ""] = await driver.claim(first);
      await driver.finish(first, firstRun, 1);
      expect(await store.read.session("s")).toMatchObject({ place_id, runner_id: "first", project_dir: "/begun/here" });
      await store.apply([{ op: "leave_runner", ...first }]);
      for (const [name, changes] of Object.entries({
        elsewhere: { place_id: "another" },
        "other host": { place_id, hostname: "another" },
        "other profile": { place_id, executor_profile: "another" },
        nowhere: {},
      }))
        expect(await driver.claim(await driver.register(name, changes), 5)).toEqual([]);
      expect(await driver.claim(await driver.register("second", { place_id }), 5)).toEqual([next]);
    });

    it("gives a runner that only takes pinned runs nothing but those that demand it", async () => {
      await driver.submit();
      await driver.submit({ demands: { hostname: "host" } });
      const pinned = await driver.submit({ demands: { runner_id: "own" } });
      const pinnedRunner = await driver.register("own", { only_pinned: true });
      expect(await driver.claim(pinnedRunner, 5)).toEqual([pinned]);
      expect(await driver.claim(await driver.register("other"), 5)).toHaveLength(2);
    });

    it("deletes a session without active runs, and then refuses runs that continue it", async () => {
      const run = await driver.submit({ session_id: "s" }, chat);
      const remove = () => store.apply([{ op: "delete_session", session_id: "s" }]);
      expect(await remove()).toEqual([{ ok: false, conflict: "busy" }]);
      const runner = await driver.register("r");
      await driver.claim(runner);
      expect(await remove()).toEqual([{ ok: false, conflict: "busy" }]);
      await driver.finish(runner, run, 1);
      expect(await store.read.deleted_sessions(["s", "never"])).toEqual(["never"]);
      expect(await remove()).toEqual([{ ok: true, op: "delete_session" }]);
      expect(await remove()).toEqual([{ ok: false, conflict: "not_found" }]);
      expect(await store.read.deleted_sessions(["s", "never"])).toEqual(["s", "never"]);
      expect(await driver.statuses(run)).toEqual(["completed"]);
      await expect(driver.submit({ session_id: "s", mode: "resume" }, chat)).rejects.toThrow("not_found");
      await expect(driver.submit({ session_id: "f", forked_from: "s", mode: "fork" }, chat)).rejects.toThrow(
        "not_found",
      );
      expect(await store.read.session("f")).toBeNull();
    });

    it("keeps the state that a run saved for runs that continue its session, and removes it with the session", async () => {
      const first = await driver.submit({ session_id: "s" }, chat);
      const runner = await driver.register("r", { slots: 9 });
      await driver.claim(runner);
      expect(await driver.load(runner, first, 1)).toBeNull();
      const files = [{ path: "a", type: "file", bytes: new Uint8Array([1, 2]) }] as const;
      expect(await driver.save(runner, first, 1, 1, "one", { files: [...files] })).toMatchObject({
        ok: true,
        last_n: 1,
      });
      expect(await driver.save(runner, first, 1, 3, "three")).toEqual({ ok: false, conflict: "gap", last_n: 1 });
      await driver.finish(runner, first, 1, { last_n: 1 });
      expect(await driver.save(runner, first, 1, 2, "two")).toMatchObject({ conflict: "fenced" });
      const fork = await driver.submit({ session_id: "f", forked_from: "s", mode: "fork" }, chat);
      const next = await driver.submit({ session_id: "s", mode: "resume" }, chat);
      await driver.claim(runner, 5);
      expect(await driver.save(runner, next, 1, 1, "of the next")).toMatchObject({ ok: true });
      expect([await driver.load(runner, next, 1), await driver.load(runner, fork, 1)]).toEqual([
        "of the next",
        "of the next",
      ]);
      await driver.save(runner, fork, 1, 1, "of the fork");
      expect([await driver.load(runner, next, 1), await driver.load(runner, fork, 1)]).toEqual([
        "of the next",
        "of the fork",
      ]);
      const listFiles = (run_id: string) => store.read.session_state({ run_id, attempt: 1, runner }, "");
      expect(await listFiles(next)).toMatchObject({
        state: null,
        files: [{ path: "a", bytes: expect.objectContaining({ length: 2 }) }],
        more: false,
      });
      expect(await listFiles(fork)).toEqual({ state: null, files: [], more: false });
      for (const run_id of [next, fork]) await driver.finish(runner, run_id, 1, { last_n: 1 });
      await store.apply([{ op: "delete_session", session_id: "s" }]);
      const resumedRun = await driver.submit({ session_id: "s" }, chat);
      await driver.claim(runner);
      expect(await driver.load(runner, resumedRun, 1)).toBeNull();
      expect(await listFiles(resumedRun)).toEqual({ state: null, files: [], more: false });
    });

    it("continues a run that lost its runner from its state, three times at no cost, and informs its next runner", async () => {
      const run = await driver.submit({ session_id: "s" }, chat);
      for (let attempt = 1; attempt <= 4; attempt += 1) {
        const runner = await driver.register(`r${attempt}`, { place_id: `place ${attempt}` });
        const { claims } = await driver.poll(runner, 5);
        expect(claims).toMatchObject([{ attempt, invocation: { continues: attempt > 1, mode: "start" } }]);
        expect(await driver.load(runner, run, attempt)).toBe(attempt === 1 ? null : `state ${attempt - 1}`);
        await driver.save(runner, run, attempt, 1, `state ${attempt}`);
        await loseRunners();
        const isLastLoss = attempt === 4;
        expect(await store.read.run(run)).toMatchObject({
          status: isLastLoss ? "failed" : "pending",
          failures: isLastLoss ? 1 : 0,
        });
      }
    });

    it("prefers the place of a portable session, and then lets any other runner take it", async () => {
      const place_id = "the place";
      const first = await driver.register("first", { place_id });
      const run = await driver.submit({ session_id: "s" }, chat);
      await driver.claim(first);
      await driver.save(first, run, 1, 1, "state");
      await driver.finish(first, run, 1, { last_n: 1 });
      const other = await driver.register("other", { place_id: "another" });
      const next = await driver.submit({ session_id: "s", mode: "resume" }, chat);
      expect(await driver.claim(other)).toEqual([]);
      expect(await store.read.why(next)).toEqual([
        {
          demand: "session",
          detail: expect.stringContaining(
            "only the runners of its state directory (place_id the place) may take it for 5 s",
          ),
        },
      ]);
      await rescue();
      expect(await driver.claim(other)).toEqual([]);
      advance(5000);
      const announcements: number[] = [];
      const unsubscribe = store.changes(({ claimable }) => announcements.push(claimable.length));
      await rescue();
      unsubscribe();
      expect(announcements).toContain(1);
      expect(await driver.claim(await driver.register("stranger", { executor_profile: "another" }))).toEqual([]);
      expect(await driver.claim(other)).toEqual([next]);
    });

    it("makes a run whose files were not saved wait for its place, and fails it as session_not_found", async () => {
      const first = await driver.register("first", { place_id: "the place" });
      const run = await driver.submit({ session_id: "s" }, chat);
      await driver.claim(first);
      await driver.save(first, run, 1, 1, "state", { portable: false });
      await loseRunners();
      expect(await driver.claim(await driver.register("other", { place_id: "another" }))).toEqual([]);
      expect(await store.read.why(run)).toMatchObject([{ demand: "place_id" }, { demand: "session" }]);
      advance(60_000);
      await rescue(50_000);
      expect(await store.read.run(run)).toMatchObject({ status: "failed", reason: "session_not_found" });
    });

    it("fails a resume of a session that exists only on a lost runner as session_not_found, and says what to do", async () => {
      const first = await driver.register("first", { place_id: "the place" });
      const firstRun = await driver.submit({ session_id: "s" }, chat);
      await driver.claim(first);
      await driver.finish(first, firstRun, 1);
      await loseRunners();
      await driver.register("other", { place_id: "another" });
      const demands = { place_id: "the place" };
      const run = await driver.submit({ session_id: "s", mode: "resume", demands }, chat);
      const runElsewhere = await driver.submit({ session_id: "t", demands }, chat);
      expect(await store.read.why(run)).toMatchObject([{ demand: "place_id" }, { demand: "session" }]);
      advance(60_000);
      await rescue(50_000);
      expect(await store.read.run(run)).toMatchObject({
        status: "failed",
        reason: "session_not_found",
        error: expect.stringContaining("Start its runner there again, or start a new session."),
      });
      expect(await store.read.run(runElsewhere)).toMatchObject({ status: "failed", reason: "no_matching_runner" });
    });

    it("releases the next run of a session even if the previous one was stopped while it waited for a directory", async () => {
      const runner = await driver.register("r", { slots: 9 });
      const holder = await driver.submit({ session_id: "h", project_dir: "/p" }, chat);
      const waitingRun = await driver.submit({ session_id: "s", project_dir: "/p" }, chat);
      const blockedRuns = await driver.submit({ session_id: "s", mode: "resume" }, chat);
      expect(await driver.claim(runner, 5)).toEqual([holder]);
      await store.apply([{ op: "stop_runs", run_ids: [waitingRun], reason: "user", by: "ann" }]);
      expect(await driver.claim(runner, 5)).toEqual([blockedRuns]);
    });
  });
}
