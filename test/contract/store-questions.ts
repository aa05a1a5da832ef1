import { describe, expect, it } from "vitest";
import type { RunEvent } from "../../src/model/event.ts";
import type { Decision } from "../../src/model/executor.ts";
import type { Run } from "../../src/model/run.ts";
import type { FinishRun } from "../../src/model/store.ts";
import { agentNamed, type Driven } from "../fixtures/dispatch/drive.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";

const chat = agentNamed("chat", { type: "autonomous", command: null });
const request = (request_id = "q", more: Partial<Extract<RunEvent, { type: "permission_request" }>> = {}) =>
  ({ type: "permission_request", request_id, tool: "shell", input: { command: "ls" }, ...more }) as const;
const allow: Decision = { decision: "allow" };
const approval: NonNullable<FinishRun["parked"]> = { why: "approval" };

/** What every store must do about questions, parked runs and the runs that go on. */
export function storeQuestionContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the question contract`, () => {
    const { store, d, now, advance } = eachWithStore(open);
    const rescue = (limit = 100) => store.apply([{ op: "rescue", unmatched_ms: 1e9, limit }]);
    const answer = async (run_id: string, request_id = "q", given: Decision = allow, by = "ann") =>
      (await store.apply([{ op: "answer_question", run_id, request_id, answer: given, by }]))[0];
    const inbox = async (filter: Parameters<typeof store.read.questions>[0] = { open: true }) =>
      (await store.read.questions(filter, { limit: 100 })).items.map(({ run_id, request_id }) => [run_id, request_id]);
    const types = async (run_id: string) =>
      (await store.read.events(run_id, 0, 1000)).map(({ event }) =>
        event.type === "status" ? event.status : event.type === "permission_decision" ? event.decision : event.type,
      );
    /** A run that waits for an answer. */
    const asked = async (runner: Driven, agent = chat, session_id = "s") => {
      const run_id = await d.submit({ attended: true, session_id }, agent);
      expect(await d.claim(runner)).toEqual([run_id]);
      await d.append(runner, run_id, 1, 1, request());
      return run_id;
    };
    const parked = async (runner: Driven, agent = chat, session_id = "s") => {
      const run_id = await asked(runner, agent, session_id);
      await d.save(runner, run_id, 1, 2, "state");
      expect(await d.finish(runner, run_id, 1, { last_n: 2, parked: approval })).toMatchObject({ ok: true });
      return run_id;
    };

    describe("asking", () => {
      it("keeps a question with the event that asks it, and the run waits", async () => {
        const runner = await d.register("r");
        const run_id = await d.submit({ attended: true, session_id: "s", created_by: "eve" }, chat);
        await d.claim(runner);
        const schema = { type: "object" };
        await d.append(runner, run_id, 1, 1, request("q", { effect: "execute", input_schema: schema }));
        expect(await d.statuses(run_id)).toEqual(["waiting"]);
        const question = await store.read.question(run_id, "q");
        expect(question).toEqual({
          run_id,
          request_id: "q",
          attempt: 1,
          agent_name: "chat",
          session_id: "s",
          created_by: "eve",
          parents: [],
          tool: "shell",
          input: { command: "ls" },
          effect: "execute",
          input_schema: schema,
          asked_at: now().toISOString(),
          expires_at: new Date(now().getTime() + 7 * 24 * 3_600_000).toISOString(),
          decision: null,
          answered_by: null,
          answered_at: null,
          message: null,
          edited_input: null,
          remember: null,
        });
        expect(await store.read.why(run_id)).toMatchObject([{ demand: "approval" }]);
      });

      it("asks nobody for a run that nobody attends, nor for one that is being stopped", async () => {
        const runner = await d.register("r", { slots: 9 });
        const alone = await d.submit({ session_id: "a" }, chat);
        const stopped = await d.submit({ session_id: "b", attended: true }, chat);
        await d.claim(runner, 2);
        await store.apply([{ op: "stop_runs", run_ids: [stopped], reason: "user", by: "ann" }]);
        for (const run_id of [alone, stopped]) await d.append(runner, run_id, 1, 1, request());
        expect(await inbox({})).toEqual([]);
        expect(await d.statuses(alone, stopped)).toEqual(["running", "stopping"]);
      });

      it("lists open questions oldest first, by owner and by run, a page at a time, with the runs that led there", async () => {
        const runner = await d.register("r", { slots: 9 });
        const parent = await d.submit({ session_id: "p" }, chat);
        const runs = [];
        for (const created_by of ["ann", "bob", "ann"])
          runs.push(
            await d.submit(
              { attended: true, session_id: created_by + runs.length, created_by, parent_run_id: parent },
              chat,
            ),
          );
        await d.claim(runner, 9);
        for (const run_id of runs) await d.append(runner, run_id, 1, 1, request());
        const [first = "", second = "", third = ""] = runs;
        expect(await inbox()).toEqual(runs.map((run_id) => [run_id, "q"]));
        expect(await inbox({ open: true, created_by: "ann" })).toEqual([first, third].map((run_id) => [run_id, "q"]));
        expect(await inbox({ run_id: second })).toEqual([[second, "q"]]);
        const page = await store.read.questions({ open: true }, { limit: 2 });
        expect(page).toMatchObject({ count: 3, items: [{ parents: [{ run_id: parent, agent_name: "chat" }] }, {}] });
        const rest = await store.read.questions({ open: true }, { limit: 2, after: page.next! });
        expect(rest).toMatchObject({ count: 3, next: null, items: [{ run_id: third }] });
        await answer(second);
        expect(await inbox({ open: false })).toEqual([[second, "q"]]);
      });

      it("waits until the last of several questions is answered, and for none that its runner takes back", async () => {
        const runner = await d.register("r");
        const run_id = await asked(runner);
        await d.append(runner, run_id, 1, 2, request("r"), request("s"));
        await answer(run_id, "q");
        await answer(run_id, "r");
        expect(await d.statuses(run_id)).toEqual(["waiting"]);
        await d.append(runner, run_id, 1, 4, {
          type: "permission_decision",
          request_id: "s",
          decision: "superseded",
          by: "x",
        });
        expect(await d.statuses(run_id)).toEqual(["running"]);
        expect(await answer(run_id, "s")).toMatchObject({ ok: false, conflict: "closed" });
      });

      it("releases slot and cap while it waits", async () => {
        const one = agentNamed("one", { type: "autonomous", command: null, max_concurrent: 1 });
        const runner = await d.register("r", { slots: 1 });
        const run_id = await asked(runner, one);
        expect(await store.read.runner("r")).toMatchObject({ running: 0 });
        const next = await d.submit({ session_id: "t" }, one);
        expect(await d.claim(runner)).toEqual([next]);
        await answer(run_id);
        expect(await d.statuses(run_id, next)).toEqual(["running", "claimed"]);
      });
    });

    describe("answering", () => {
      it("orders the runner, and logs who decided what", async () => {
        const runner = await d.register("r");
        const run_id = await asked(runner);
        const given = { decision: "allow", input: { command: "pwd" }, remember: "session" } as const;
        expect(await answer(run_id, "q", given)).toMatchObject({
          ok: true,
          question: {
            decision: "allow",
            answered_by: "ann",
            answered_at: now().toISOString(),
            edited_input: { command: "pwd" },
          },
        });
        expect(await d.statuses(run_id)).toEqual(["running"]);
        const { orders } = await d.poll(runner, 0, "orders");
        expect(orders).toMatchObject([{ run_id, attempt: 1, answer: { request_id: "q", answer: given } }]);
        expect(await d.event(run_id, -2)).toEqual({
          type: "permission_decision",
          request_id: "q",
          by: "ann",
          ...given,
        });
        expect(await d.event(run_id, -1)).toMatchObject({ type: "status", status: "running" });
        // An event of the runner that was on its way then changes nothing.
        await d.append(runner, run_id, 1, 2, { type: "status", status: "waiting", reason: "shell" });
        expect(await d.statuses(run_id)).toEqual(["running"]);
        expect(await d.finish(runner, run_id, 1, { last_n: 2 })).toMatchObject({ ok: true });
        const resumed = await d.submit({ session_id: "s", mode: "resume", attended: true }, chat);
        const { claims } = await d.poll(runner, 1);
        expect(claims[0]?.invocation).toMatchObject({ run_id: resumed, granted_tools: ["shell"], answers: [] });
      });

      it("takes the first of two answers, also where both come in one transaction, and names who gave it", async () => {
        const runner = await d.register("r", { slots: 9 });
        const [one, two] = [await asked(runner), await asked(runner, chat, "t")];
        await answer(one, "q", { decision: "deny", message: "no" });
        expect(await answer(one, "q", allow, "bob")).toMatchObject({
          ok: false,
          conflict: "answered",
          question: { decision: "deny", answered_by: "ann", message: "no" },
        });
        const by = (name: string) =>
          ({ op: "answer_question", run_id: two, request_id: "q", answer: allow, by: name }) as const;
        const both = await store.apply([by("bob"), by("eve")]);
        expect(both).toMatchObject([{ ok: true }, { conflict: "answered", question: { answered_by: "bob" } }]);
        expect((await d.poll(runner, 0)).orders).toHaveLength(2);
        expect(await answer(one, "unknown")).toEqual({ ok: false, conflict: "not_found" });
        expect(await answer("no run")).toEqual({ ok: false, conflict: "not_found" });
      });

      it("keeps an answer for the next attempt where the runner is lost, and asks anew what nobody answered", async () => {
        const runner = await d.register("r");
        const run_id = await asked(runner);
        await d.append(runner, run_id, 1, 2, request("r"));
        await d.save(runner, run_id, 1, 3, "state");
        advance(10_001);
        await rescue();
        expect(await d.statuses(run_id)).toEqual(["pending"]);
        expect(await answer(run_id, "q", { decision: "deny", message: "no" })).toMatchObject({ ok: true });
        const other = await d.register("other");
        const { claims } = await d.poll(other, 1);
        expect(claims[0]?.invocation).toMatchObject({
          attempt: 2,
          continues: true,
          answers: [
            { request_id: "q", tool: "shell", input: { command: "ls" }, answer: { decision: "deny", message: "no" } },
          ],
        });
        expect(await inbox()).toEqual([]);
        expect(await answer(run_id, "r")).toMatchObject({ conflict: "closed", question: { decision: "superseded" } });
        await d.append(other, run_id, 2, 1, request("r"));
        expect(await answer(run_id, "r")).toMatchObject({ ok: true, question: { attempt: 2 } });
      });

      it("closes what is open when the run ends or is stopped", async () => {
        const runner = await d.register("r", { slots: 9 });
        const [ended, stopped] = [await asked(runner), await asked(runner, chat, "t")];
        await d.finish(runner, ended, 1, { last_n: 1 });
        await store.apply([{ op: "stop_runs", run_ids: [stopped], reason: "user", by: "ann" }]);
        expect(await inbox()).toEqual([]);
        for (const run_id of [ended, stopped])
          expect(await answer(run_id)).toMatchObject({ conflict: "closed", question: { decision: "superseded" } });
        expect(await d.event(ended, -1)).toMatchObject({ type: "result" });
      });
    });

    describe("input", () => {
      it("goes to the runner of a run that is at work, and into its log", async () => {
        const runner = await d.register("r");
        const send = async (run_id: string) =>
          (await store.apply([{ op: "send_input", run_id, text: "hi", by: "ann" }]))[0];
        const run_id = await d.submit({ session_id: "s" }, chat);
        expect(await send(run_id)).toMatchObject({ ok: false, conflict: "wrong_state", status: "pending" });
        expect(await send("none")).toEqual({ ok: false, conflict: "not_found" });
        await d.claim(runner);
        expect(await send(run_id)).toMatchObject({ ok: true });
        expect((await d.poll(runner, 0)).orders).toMatchObject([{ run_id, input: { text: "hi", seq: 3 } }]);
        expect((await store.read.events(run_id, 2, 1))[0]).toMatchObject({ seq: 3, event: { subtype: "user_input" } });
        expect(await d.event(run_id, -1)).toEqual({
          type: "system",
          subtype: "user_input",
          data: { text: "hi", by: "ann" },
        });
        await d.finish(runner, run_id, 1);
        expect(await send(run_id)).toMatchObject({ conflict: "wrong_state", status: "completed" });
      });

      it("comes with the run's next attempt, whether or not its runner had it, and not with another run's", async () => {
        const runner = await d.register("r", { slots: 9 });
        const run_id = await d.submit({ session_id: "s" }, chat);
        const other = await d.submit({ session_id: "other" }, chat);
        await d.claim(runner, 2);
        const send = (to: string, text: string) => store.apply([{ op: "send_input", run_id: to, text, by: "ann" }]);
        await send(run_id, "one");
        await send(other, "for the other");
        await d.poll(runner, 0);
        await d.append(runner, run_id, 1, 1, { type: "system", subtype: "user_input", data: { text: "forged" } });
        await d.save(runner, run_id, 1, 2, "state");
        await send(run_id, 'two: 100% "_"');
        await store.apply([{ op: "leave_runner", runner_id: runner.runner_id, epoch: runner.epoch }]);
        const next = await d.register("r", { slots: 9 });
        const claim = (await d.poll(next, 2)).claims.find((one) => one.run_id === run_id);
        expect(claim).toMatchObject({
          run_id,
          attempt: 2,
          invocation: {
            continues: true,
            inputs: [
              { text: "one", seq: 3 },
              { text: 'two: 100% "_"', seq: expect.any(Number) },
            ],
          },
        });
        await send(run_id, "three");
        const { orders } = await d.poll(next, 0);
        expect(orders).toMatchObject([{ input: { text: "three" } }]);
      });
    });

    describe("a run that a command made for its own runner and left parked", () => {
      const mine = "run-4711-0123abcd-profile-f00d";
      const place = { place_id: "here", executor_profile: "profile" };
      const leftParked = async (changes: Partial<Run> = {}) => {
        const runner = await d.register(mine, { ...place, only_pinned: true });
        const run_id = await d.submit(
          { attended: true, session_id: "s", demands: { runner_id: mine }, ...changes },
          chat,
        );
        await d.claim(runner);
        await d.append(runner, run_id, 1, 1, request());
        await d.save(runner, run_id, 1, 2, "state");
        await d.finish(runner, run_id, 1, { last_n: 2, parked: approval });
        await store.apply([{ op: "leave_runner", ...runner }]);
        expect(await d.statuses(run_id)).toEqual(["parked"]);
        return run_id;
      };

      it("is continued by another runner of its place, and by none of another", async () => {
        const run_id = await leftParked();
        const other = await d.register("other", { ...place, place_id: "there" });
        const up = await d.register("up", place);
        expect(await answer(run_id)).toMatchObject({ ok: true });
        expect(await d.claim(other)).toEqual([]);
        expect((await d.poll(up, 1)).claims).toMatchObject([{ run_id, attempt: 2, invocation: { continues: true } }]);
      });

      it("waits for a runner of its place that comes after the answer", async () => {
        const run_id = await leftParked();
        expect(await answer(run_id)).toMatchObject({ ok: true });
        const late = await d.register("late", { ...place, place_id: "there" });
        expect(await d.claim(late)).toEqual([]);
        expect(await d.claim(await d.register("up", place))).toEqual([run_id]);
      });

      it("is continued by a command that takes that runner's name", async () => {
        const run_id = await leftParked();
        expect(await answer(run_id)).toMatchObject({ ok: true });
        expect(await d.claim(await d.register(mine, { ...place, only_pinned: true }, "another"))).toEqual([run_id]);
      });

      it("stays with a runner that its caller chose, also while that is away", async () => {
        const chosen = await d.register("chosen", place);
        const run_id = await d.submit({ attended: true, session_id: "s", demands: { runner_id: "chosen" } }, chat);
        await d.claim(chosen);
        await d.append(chosen, run_id, 1, 1, request());
        await d.save(chosen, run_id, 1, 2, "state");
        await d.finish(chosen, run_id, 1, { last_n: 2, parked: approval });
        await store.apply([{ op: "leave_runner", ...chosen }]);
        const up = await d.register("up", place);
        await answer(run_id);
        expect(await d.claim(up)).toEqual([]);
        expect(await d.claim(await d.register("chosen", place))).toEqual([run_id]);
      });
    });

    describe("a parked run", () => {
      it("costs nothing, and goes on with the answer: at no cost, over slot and cap, to its own runner first", async () => {
        const one = agentNamed("one", { type: "autonomous", command: null, max_concurrent: 1 });
        const runner = await d.register("r", { slots: 1 });
        const run_id = await parked(runner, one);
        expect(await store.read.run(run_id)).toMatchObject({
          status: "parked",
          parked_why: "approval",
          parked_until: null,
          runner_id: null,
        });
        expect(await d.finish(runner, run_id, 1, { last_n: 2, parked: approval })).toMatchObject({ repeated: true });
        const next = await d.submit({ session_id: "t" }, one);
        expect(await d.claim(runner)).toEqual([next]);
        const other = await d.register("other", { slots: 1 });
        const heard: unknown[] = [];
        const stop = store.changes(({ resumed = [] }) => heard.push(...resumed));
        await answer(run_id);
        stop();
        expect(heard).toHaveLength(1);
        expect(await d.statuses(run_id)).toEqual(["pending"]);
        expect(await store.read.poller({ ...other, claim_id: "known", want: 0 })).toMatchObject({ idle: false });
        expect(await store.read.with_work(["r", "other"])).toEqual(["r"]);
        expect(await d.claim(other, 1)).toEqual([]);
        const { claims } = await d.poll(runner, 0, "full");
        expect(claims).toMatchObject([{ run_id, attempt: 2, invocation: { mode: "start", continues: true } }]);
        expect(claims[0]?.invocation.answers).toMatchObject([{ request_id: "q", answer: allow }]);
        expect((await d.poll(runner, 0, "full")).claims).toMatchObject([{ run_id, attempt: 2 }]);
        await d.append(runner, run_id, 2, 1, { type: "status", status: "running" });
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

      it("goes to any runner where its own does not take it", async () => {
        const runner = await d.register("r");
        const run_id = await parked(runner);
        const other = await d.register("other");
        await answer(run_id);
        advance(5001);
        await store.apply([{ op: "renew_idle", runner_ids: ["r", "other"], lease_ms: 10_000 }]);
        await rescue();
        expect((await d.poll(other, 0)).claims).toMatchObject([{ run_id, invocation: { continues: true } }]);
      });

      it("is given to no runner that drains, lacks what it needs, or may start nothing", async () => {
        const runner = await d.register("r");
        await answer(await parked(runner));
        const claim = { op: "claim_runs", ...runner, want: 0, ack_order: 0, lease_ms: 10_000 } as const;
        const [short, held] = await store.apply([
          { ...claim, claim_id: "short", shortage: "no descriptors" },
          { ...claim, claim_id: "held", hold: "no disk" },
        ]);
        expect([short, held]).toMatchObject([{ claims: [] }, { claims: [] }]);
        await store.apply([{ op: "drain_runner", runner_id: "r", draining: true }]);
        expect((await d.poll(runner, 0)).claims).toEqual([]);
      });

      it("goes on at once where the answer came before it was parked, and ends where that was a stop", async () => {
        const runner = await d.register("r", { slots: 9 });
        const [answered, stopped] = [await asked(runner), await asked(runner, chat, "t")];
        await answer(answered);
        await answer(stopped, "q", { decision: "stop" });
        for (const run_id of [answered, stopped]) await d.finish(runner, run_id, 1, { last_n: 1, parked: approval });
        expect(await d.statuses(answered)).toEqual(["pending"]);
        expect(await store.read.run(stopped)).toMatchObject({ status: "failed", reason: "permission_denied" });
        expect((await d.poll(runner, 0)).claims).toMatchObject([{ run_id: answered, invocation: { continues: true } }]);
      });

      it("fails where the answer is a stop, and is cancelled where it is stopped", async () => {
        const runner = await d.register("r");
        const [refused, stopped] = [await parked(runner), await parked(runner, chat, "t")];
        await answer(refused, "q", { decision: "stop", message: "never" });
        await store.apply([{ op: "stop_runs", run_ids: [stopped], reason: "user", by: "ann" }]);
        expect(await store.read.run(refused)).toMatchObject({ status: "failed", reason: "permission_denied" });
        expect(await d.statuses(stopped)).toEqual(["cancelled"]);
        expect(await inbox()).toEqual([]);
      });

      it("holds up later runs of its session, and not its directory", async () => {
        const runner = await d.register("r", { slots: 9 });
        const place = { attended: true, project_dir: "/here" };
        const run_id = await d.submit({ ...place, session_id: "s" }, chat);
        await d.claim(runner);
        const waits = await d.submit({ ...place, session_id: "t" }, chat);
        const after = await d.submit({ ...place, session_id: "s", mode: "resume" }, chat);
        expect(await d.claim(runner, 9)).toEqual([]);
        await d.append(runner, run_id, 1, 1, request());
        await d.finish(runner, run_id, 1, { last_n: 1, parked: approval });
        expect(await d.claim(runner, 9)).toEqual([waits]);
        await answer(run_id);
        expect(await d.claim(runner, 9)).toEqual([]);
        await d.finish(runner, waits, 1);
        expect(await d.claim(runner, 9)).toEqual([run_id]);
        await d.finish(runner, run_id, 2);
        expect(await d.claim(runner, 9)).toEqual([after]);
      });

      it("goes on when its time has come, or when somebody resumes it, but not without its answer", async () => {
        const runner = await d.register("r", { slots: 9 });
        const until = new Date(now().getTime() + 60_000).toISOString();
        const runs = [];
        for (const session_id of ["a", "b"]) runs.push(await d.submit({ session_id }, chat));
        const [timed = "", resumed = ""] = runs;
        await d.claim(runner, 2);
        await d.finish(runner, timed, 1, { parked: { why: "budget", until, message: "Enough." } });
        await d.finish(runner, resumed, 1, { parked: { why: "budget" } });
        const question = await parked(runner, chat, "c");
        expect(await store.read.run(timed)).toMatchObject({ parked_until: until, waiting_for: "Enough." });
        expect(await store.read.why(timed)).toEqual([{ demand: "budget", detail: `Enough. It goes on at ${until}.` }]);
        const resume = async (run_id: string) => (await store.apply([{ op: "resume_run", run_id, by: "ann" }]))[0];
        expect(await resume(question)).toMatchObject({ conflict: "wrong_state", waits_for: "answer" });
        expect(await resume("none")).toEqual({ ok: false, conflict: "not_found" });
        expect(await resume(resumed)).toMatchObject({ ok: true });
        expect(await resume(resumed)).toMatchObject({ conflict: "wrong_state", status: "pending", waits_for: null });
        expect((await d.poll(runner, 0)).claims).toMatchObject([{ run_id: resumed }]);
        await rescue();
        expect(await d.statuses(timed)).toEqual(["parked"]);
        advance(60_000);
        await store.apply([{ op: "renew_idle", runner_ids: ["r"], lease_ms: 10_000 }]);
        expect(await rescue()).toMatchObject([{ requeued: expect.arrayContaining([timed]) }]);
      });

      it("resumes no more at a time than it is asked to", async () => {
        const runner = await d.register("r", { slots: 9 });
        const until = new Date(now().getTime() + 1000).toISOString();
        for (const session_id of ["a", "b", "c"]) await d.submit({ session_id }, chat);
        for (const run_id of await d.claim(runner, 3))
          await d.finish(runner, run_id, 1, { parked: { why: "budget", until } });
        advance(2000);
        expect(await rescue(2)).toMatchObject([{ requeued: [expect.any(String), expect.any(String)], more: true }]);
        expect(await rescue(2)).toMatchObject([{ requeued: [expect.any(String)], more: false }]);
      });
    });

    describe("expiry", () => {
      it("fails a run whose question nobody answered: at once where it is parked, by an order where it waits", async () => {
        const runner = await d.register("r", { slots: 9 });
        const brief = agentNamed("brief", { type: "autonomous", command: null, answer_within_seconds: 5 });
        const [waits, aside] = [await asked(runner, brief), await parked(runner, brief, "t")];
        advance(4999);
        await rescue();
        expect(await d.statuses(waits, aside)).toEqual(["waiting", "parked"]);
        advance(1);
        expect(await rescue()).toMatchObject([{ failed: [aside] }]);
        expect(await store.read.run(aside)).toMatchObject({ status: "failed", reason: "approval_expired" });
        expect(await d.statuses(waits)).toEqual(["stopping"]);
        expect((await d.poll(runner, 0)).orders).toMatchObject([{ run_id: waits, stop: "approval_expired" }]);
        expect(await answer(waits)).toMatchObject({ conflict: "closed", question: { decision: "expired" } });
        advance(10_001);
        await rescue();
        expect(await store.read.run(waits)).toMatchObject({ status: "failed", reason: "approval_expired" });
      });
    });
  });
}
