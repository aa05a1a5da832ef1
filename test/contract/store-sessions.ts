import { describe, expect, it } from "vitest";
import { agentNamed } from "../fixtures/dispatch/drive.ts";
import { finishOf } from "../fixtures/record/sample.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";

const chat = agentNamed("chat", { type: "autonomous", command: null });
const init = (executor_session_id: string) => ({ type: "system", subtype: "init", executor_session_id }) as const;

/** What every store must do about sessions: resume, fork, delete. */
export function storeSessionContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the session contract`, () => {
    const { store, d } = eachWithStore(open);

    it("hands a fork the executor's id of the session it was forked from, as it is once that one works no more", async () => {
      const first = await d.submit({ session_id: "s" }, chat);
      const runner = await d.register("r");
      await d.claim(runner);
      const fork = await d.submit({ session_id: "f", forked_from: "s", mode: "fork" }, chat);
      expect(await store.read.why(fork)).toEqual([
        { demand: "session", detail: "An earlier run of the session it was forked from has not ended." },
      ]);
      expect(await d.claim(runner, 5)).toEqual([]);
      await d.append(runner, first, 1, 1, init("theirs"));
      await d.finish(runner, first, 1, { last_n: 1 });
      const { claims } = await d.poll(runner, 5);
      expect(claims.map(({ invocation }) => invocation)).toMatchObject([
        { run_id: fork, session_id: "f", forked_from: "s", executor_session_id: "theirs" },
      ]);
      await d.append(runner, fork, 1, 1, init("forked"));
      await d.finish(runner, fork, 1, { last_n: 1 });
      const again = await d.submit({ session_id: "f", mode: "resume" }, chat);
      expect((await d.poll(runner, 5)).claims[0]?.invocation).toMatchObject({
        run_id: again,
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
        { run_id: again, mode: "resume", status: "claimed", parent: fork, executor_session_id: null },
        { run_id: fork, mode: "fork", status: "completed", parent: first, executor_session_id: "forked" },
      ]);
    });

    describe("runs of several sessions that end in one report", () => {
      const sessions = ["a", "b", "c", "d"];
      const begin = async () => {
        const runner = await d.register("r", { slots: 9 });
        const firsts: string[] = [];
        const nexts: string[] = [];
        for (const session_id of sessions) {
          firsts.push(await d.submit({ session_id }, chat));
          nexts.push(await d.submit({ session_id, mode: "resume" }, chat));
        }
        expect(await d.claim(runner, 9)).toEqual(firsts);
        const finishes = firsts.map((run_id) => ({ ...finishOf(run_id), attempt: 1, runner, isolation: null }));
        return { runner, firsts, nexts, finishes };
      };

      it("each let their own next one go, all to the runner that has the sessions", async () => {
        const { runner, nexts, finishes } = await begin();
        const results = await store.apply(finishes);
        expect(results.map(({ ok }) => ok)).toEqual(sessions.map(() => true));
        expect(await d.claim(runner, 9)).toEqual(nexts);
      });

      it("have not ended, any of them, where one cannot be stored", async () => {
        const { runner, firsts, nexts, finishes } = await begin();
        const other = await d.submit();
        await d.claim(runner, 9);
        const bad = finishOf(other).result;
        const events = [{ n: 1, at: new Date().toISOString(), event: bad }];
        const ops = [{ op: "append_events", run_id: other, attempt: 1, runner, events } as const, ...finishes];
        await expect(store.apply(ops)).rejects.toThrow("finish_run");
        expect(await d.statuses(...firsts)).toEqual(firsts.map(() => "claimed"));
        expect(await d.claim(runner, 9)).toEqual([]);
        await store.apply(finishes);
        expect(await d.claim(runner, 9)).toEqual(nexts);
      });
    });

    it("lets forks and resumes of a session go in the order they were asked for, each after what was before it", async () => {
      const runner = await d.register("r", { slots: 9 });
      const fork = (session_id: string) => d.submit({ session_id, forked_from: "s", mode: "fork" }, chat);
      const resume = (session_id = "s") => d.submit({ session_id, mode: "resume" }, chat);
      const first = await d.submit({ session_id: "s" }, chat);
      await d.claim(runner);
      const before = [await fork("f1"), await fork("f2"), await resume()];
      const after = [await fork("f3"), await resume()];
      const ofFork = await resume("f1");
      const told: number[] = [];
      const quit = store.changes(({ claimable }) => told.push(claimable.length));
      await d.finish(runner, first, 1, { give_back: "at_no_cost" });
      expect(await d.claim(runner, 5)).toEqual([first]);
      await d.finish(runner, first, 2);
      expect(told.at(-1)).toBe(3);
      quit();
      expect(await d.claim(runner, 5)).toEqual(before);
      await d.finish(runner, before[1]!, 1);
      expect(await d.claim(runner, 5)).toEqual([]);
      await d.finish(runner, before[2]!, 1);
      expect(await d.claim(runner, 5)).toEqual(after);
      await d.finish(runner, before[0]!, 1);
      expect(await d.claim(runner, 5)).toEqual([ofFork]);
    });

    it("lets go what waits for a fork that is stopped while it waits itself, and nothing sooner", async () => {
      const runner = await d.register("r", { slots: 9 });
      const stop = (...run_ids: string[]) => store.apply([{ op: "stop_runs", run_ids, reason: "user", by: "ann" }]);
      await d.submit({ session_id: "s" }, chat);
      await d.claim(runner);
      const fork = await d.submit({ session_id: "f", forked_from: "s", mode: "fork" }, chat);
      const behind = [];
      for (const _ of "ab") behind.push(await d.submit({ session_id: "f", mode: "resume" }, chat));
      const further = await d.submit({ session_id: "s", mode: "resume" }, chat);
      await stop(behind[0]!);
      expect(await d.claim(runner, 5)).toEqual([]);
      await stop(fork);
      expect(await d.claim(runner, 5)).toEqual([behind[1]]);
      expect(await d.statuses(further)).toEqual(["pending"]);
    });

    it("keeps the run's own directory as the session's, and none for one without", async () => {
      await d.submit({ session_id: "s" }, chat);
      await d.submit({ session_id: "p", project_dir: "/p" }, chat);
      await d.claim(await d.register("r"), 5);
      expect(await store.read.session("s")).toMatchObject({ project_dir: null, hostname: "host", runner_id: "r" });
      expect(await store.read.session("p")).toMatchObject({ project_dir: "/p" });
    });

    it("deletes a session that has no active run, and what goes on from it is refused then", async () => {
      const run = await d.submit({ session_id: "s" }, chat);
      const remove = () => store.apply([{ op: "delete_session", session_id: "s" }]);
      expect(await remove()).toEqual([{ ok: false, conflict: "busy" }]);
      const runner = await d.register("r");
      await d.claim(runner);
      expect(await remove()).toEqual([{ ok: false, conflict: "busy" }]);
      await d.finish(runner, run, 1);
      expect(await store.read.gone_sessions(["s", "never"])).toEqual(["never"]);
      expect(await remove()).toEqual([{ ok: true, op: "delete_session" }]);
      expect(await remove()).toEqual([{ ok: false, conflict: "not_found" }]);
      expect(await store.read.gone_sessions(["s", "never"])).toEqual(["s", "never"]);
      expect(await d.statuses(run)).toEqual(["completed"]);
      await expect(d.submit({ session_id: "s", mode: "resume" }, chat)).rejects.toThrow("not_found");
      await expect(d.submit({ session_id: "f", forked_from: "s", mode: "fork" }, chat)).rejects.toThrow("not_found");
      expect(await store.read.session("f")).toBeNull();
    });

    it("lets the next of a session go although the one before waited for a directory when it was stopped", async () => {
      const runner = await d.register("r", { slots: 9 });
      const holder = await d.submit({ session_id: "h", project_dir: "/p" }, chat);
      const waits = await d.submit({ session_id: "s", project_dir: "/p" }, chat);
      const behind = await d.submit({ session_id: "s", mode: "resume" }, chat);
      expect(await d.claim(runner, 5)).toEqual([holder]);
      await store.apply([{ op: "stop_runs", run_ids: [waits], reason: "user", by: "ann" }]);
      expect(await d.claim(runner, 5)).toEqual([behind]);
    });
  });
}
