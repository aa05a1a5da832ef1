import { describe, expect, it } from "vitest";
import { createAgent } from "../fixtures/dispatch/drive.ts";
import { sampleRun } from "../fixtures/record/sample.ts";
import type { Change, Op } from "../../src/model/store.ts";
import type { EachWithStore } from "./each-with-store.ts";

const rescue = { op: "rescue", unmatched_ms: 300_000, limit: 100 } as const;

/** Submitting and stopping runs, notifications, and why a run is pending. */
export function describeSubmits({ store, driver, now, advance }: EachWithStore): void {
  describe("stopping", () => {
    it("cancels pending runs, orders running ones to stop, and leaves the rest", async () => {
      const [first, second, finishedRun] = [
        await driver.submit(),
        await driver.submit(),
        await driver.submit({ priority: 1 }),
      ];
      const runner = await driver.register("r");
      await driver.claim(runner);
      await driver.finish(runner, finishedRun, 1);
      await driver.claim(runner);
      const stop = {
        op: "stop_runs",
        run_ids: [first, second, finishedRun, "none"],
        reason: "user",
        by: "ann",
      } satisfies Op;
      expect(await store.apply([stop])).toEqual([
        {
          ok: true,
          op: "stop_runs",
          cancelled: [second],
          stopping: [first],
          untouched: [finishedRun, "none"],
          runners: ["r"],
        },
      ]);
      expect(await store.read.run(second)).toMatchObject({ status: "cancelled", reason: null });
      const { orders } = await driver.poll(runner, 1, "x");
      expect(orders).toEqual([{ no: 1, run_id: first, attempt: 1, stop: "user" }]);
      expect((await driver.poll(runner, 1, "y")).orders).toEqual(orders);
      expect((await driver.poll(runner, 1, "z", 1)).orders).toEqual([]);
      await driver.finish(runner, first, 1, {
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
      expect(await driver.statuses(first)).toEqual(["cancelled"]);
    });

    it("ends a stopping run whose runner is lost, instead of requeueing it", async () => {
      const retriedAgent = createAgent("often", { max_attempts: 5 });
      const runs = [];
      for (let i = 0; i < 3; i += 1) runs.push(await driver.submit({}, retriedAgent));
      const [a, b, c] = [await driver.register("a"), await driver.register("b"), await driver.register("c")];
      for (const runner of [a, b, c]) await driver.claim(runner);
      await store.apply([{ op: "stop_runs", run_ids: runs, reason: "user", by: "ann" }]);
      await driver.finish(a, runs[0]!, 1, { give_back: "at_no_cost" });
      await store.apply([{ op: "leave_runner", ...b }]);
      advance(10_001);
      await store.apply([rescue]);
      expect(await driver.statuses(...runs)).toEqual(["cancelled", "cancelled", "cancelled"]);
    });

    it("drops an order with the attempt it was for", async () => {
      const run = await driver.submit({}, createAgent("often", { max_attempts: 5 }));
      const runner = await driver.register("r");
      await driver.claim(runner);
      await store.apply([{ op: "stop_runs", run_ids: [run], reason: "user", by: "ann" }]);
      await driver.finish(runner, run, 1);
      expect((await driver.poll(runner, 1)).orders).toEqual([]);
    });
  });

  describe("submits", () => {
    it("recognizes a repeated idempotency key, and refuses it for another request", async () => {
      const key = { subject: "ann", key: "k", fingerprint: "f" };
      const run = await driver.submit({}, createAgent("echo"), { idempotency: key });
      const submitAgain = (idempotency: typeof key) => driver.submit({}, createAgent("echo"), { idempotency });
      await submitAgain(key);
      await expect(submitAgain({ ...key, fingerprint: "other" })).rejects.toThrow("idempotency");
      await submitAgain({ ...key, subject: "bob" });
      expect((await store.read.runs({}, { limit: 10 })).length).toBe(2);
      const [repeated] = await store.apply([
        {
          op: "create_run",
          run: { ...(await store.read.run(run))!, run_id: "x" },
          events: [],
          agent: createAgent("echo"),
          idempotency: key,
        },
      ]);
      expect(repeated).toMatchObject({ ok: true, repeated: true, run_id: run });
    });

    it("stores many different runs that are submitted at once, each unchanged", async () => {
      const agents = [createAgent("echo"), createAgent("chat", { type: "autonomous", command: null })];
      const oddTexts = [
        "",
        "null",
        '"',
        "\\",
        '{"a",b}',
        "a,b",
        "a\0b",
        "\ud800",
        "😀",
        "\n\r\t",
        "'; drop table runs",
      ];
      const newRuns = oddTexts.flatMap((text, index) =>
        agents.map((agent, kind) => {
          const changes = { idempotency: { subject: text, key: `${text} ${kind}`, fingerprint: text } };
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
          return { agent, run, changes };
        }),
      );
      const submitAll = () => Promise.all(newRuns.map(({ agent, run, changes }) => driver.submit(run, agent, changes)));
      await submitAll();
      for (const { run, agent } of newRuns) {
        expect(await store.read.run(run.run_id)).toEqual(run);
        expect(await driver.event(run.run_id, -1)).toEqual({ type: "status", status: "pending" });
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
      expect(await store.read.runs({}, { limit: 100 })).toHaveLength(newRuns.length);
    });

    it("keeps the agent a run was submitted with", async () => {
      const firstAgent = createAgent("echo", { description: "before" });
      const run = await driver.submit({}, firstAgent, { timeout_seconds: 7 });
      await store.apply([{ op: "put_agent", agent: createAgent("echo", { description: "after" }), by: "ann" }]);
      const { claims } = await driver.poll(await driver.register("r"), 1);
      expect(claims[0]).toMatchObject({
        timeout_seconds: 7,
        invocation: { agent: { description: "before", timeout_seconds: 7 } },
      });
      expect(await store.read.submitted_agent(run)).toMatchObject({ agent: firstAgent, timeout_seconds: 7 });
    });

    it("creates a session with each start, which a procedural run binds to itself", async () => {
      await driver.submit({ session_id: "p", created_by: "ann" });
      await driver.submit(
        { session_id: "q", created_by: "bob" },
        createAgent("chat", { type: "autonomous", command: null }),
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

  it("notifies listeners after each commit of what they may wait for", async () => {
    const changes: Change[] = [];
    const stop = store.changes((change) => changes.push(change));
    const run = await driver.submit({ demands: { tags: ["a"] } });
    expect(changes.at(-1)).toEqual({
      runs: new Set([run]),
      claimable: [{ tags: ["a"] }],
      runnersWithOrders: new Set(),
      fromOtherProcess: false,
    });
    const runner = await driver.register("r", { tags: ["a"] });
    await driver.claim(runner);
    await store.apply([{ op: "stop_runs", run_ids: [run], reason: "user", by: "ann" }]);
    expect(changes.at(-1)).toMatchObject({ runnersWithOrders: new Set(["r"]), runs: new Set([run]) });
    stop();
    const notified = changes.length;
    await driver.submit();
    expect(changes).toHaveLength(notified);
  });

  describe("why", () => {
    const why = async (run_id: string) =>
      (await store.read.why(run_id))?.map(({ demand, detail }) => `${demand}: ${detail}`).join("\n");

    it("names what is missing", async () => {
      const run = await driver.submit({ demands: { hostname: "big", tags: ["gpu", "cuda"] } });
      expect(await why(run)).toContain("agent: No runner is online");
      await driver.register("r");
      expect(await why(run)).toContain("hostname: No online runner has hostname big");
      await driver.register("b", { hostname: "big", tags: ["gpu"] });
      expect(await why(run)).toContain("tags: No online runner has the tag cuda");
      await driver.register("c", { hostname: "big", tags: ["cuda"] });
      expect(await why(run)).toContain("No single online runner has all");
      const full = await driver.register("d", { hostname: "big", tags: ["cuda", "gpu"], slots: 1 });
      expect(await why(run)).toBe("");
      await driver.submit({ priority: 9, demands: { runner_id: "d" } });
      await driver.claim(full);
      expect(await why(run)).toContain("slots: All slots are busy");
      await store.apply([{ op: "drain_runner", runner_id: "d", draining: true }]);
      expect(await why(run)).toContain("slots: Every runner that could take it is draining");
      const pinned = await driver.submit({ demands: { runner_id: "gone" } });
      expect(await why(pinned)).toContain("runner_id: Runner gone is offline");
      expect(await store.read.why("none")).toBeNull();
    });
  });
}
