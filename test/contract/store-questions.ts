import { describe, expect, it } from "vitest";
import { allow, createQuestionHelpers, chat, request } from "../fixtures/dispatch/ask.ts";
import { createAgent } from "../fixtures/dispatch/drive.ts";
import { eachWithStore, type OpenedForDispatch } from "./each-with-store.ts";
import { describeParked } from "./store-parked.ts";

/** What every store must do about questions, parked runs and their continuation. */
export function storeQuestionContract(engine: string, open: () => Promise<OpenedForDispatch>): void {
  describe(`${engine} keeps the question contract`, () => {
    const opened = eachWithStore(open);
    const { store, driver, now, advance } = opened;
    const { rescue, answer, inbox, createWaitingRun, createParkedRun } = createQuestionHelpers(opened);

    describe("asking", () => {
      it("stores a question with the event that asks it, and the run waits", async () => {
        const runner = await driver.register("r");
        const run_id = await driver.submit({ attended: true, session_id: "s", created_by: "eve" }, chat);
        await driver.claim(runner);
        const schema = { type: "object" };
        await driver.append(runner, run_id, 1, 1, request("q", { effect: "execute", input_schema: schema }));
        expect(await driver.statuses(run_id)).toEqual(["waiting"]);
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

      it("stores no question for an unattended run, or for one that is stopping", async () => {
        const runner = await driver.register("r", { slots: 9 });
        const unattended = await driver.submit({ session_id: "a" }, chat);
        const stopped = await driver.submit({ session_id: "b", attended: true }, chat);
        await driver.claim(runner, 2);
        await store.apply([{ op: "stop_runs", run_ids: [stopped], reason: "user", by: "ann" }]);
        for (const run_id of [unattended, stopped]) await driver.append(runner, run_id, 1, 1, request());
        expect(await inbox({})).toEqual([]);
        expect(await driver.statuses(unattended, stopped)).toEqual(["running", "stopping"]);
      });

      it("lists open questions oldest first, by owner and run, in pages, with the parent runs", async () => {
        const runner = await driver.register("r", { slots: 9 });
        const parent = await driver.submit({ session_id: "p" }, chat);
        const runs = [];
        for (const created_by of ["ann", "bob", "ann"])
          runs.push(
            await driver.submit(
              { attended: true, session_id: created_by + runs.length, created_by, parent_run_id: parent },
              chat,
            ),
          );
        await driver.claim(runner, 9);
        for (const run_id of runs) await driver.append(runner, run_id, 1, 1, request());
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

      it("waits until the last of several questions is answered, and for none that its runner withdraws", async () => {
        const runner = await driver.register("r");
        const run_id = await createWaitingRun(runner);
        await driver.append(runner, run_id, 1, 2, request("r"), request("s"));
        await answer(run_id, "q");
        await answer(run_id, "r");
        expect(await driver.statuses(run_id)).toEqual(["waiting"]);
        await driver.append(runner, run_id, 1, 4, {
          type: "permission_decision",
          request_id: "s",
          decision: "superseded",
          by: "x",
        });
        expect(await driver.statuses(run_id)).toEqual(["running"]);
        expect(await answer(run_id, "s")).toMatchObject({ ok: false, conflict: "closed" });
      });

      it("releases slot and cap while it waits", async () => {
        const one = createAgent("one", { type: "autonomous", command: null, max_concurrent: 1 });
        const runner = await driver.register("r", { slots: 1 });
        const run_id = await createWaitingRun(runner, one);
        expect(await store.read.runner("r")).toMatchObject({ running: 0 });
        const next = await driver.submit({ session_id: "t" }, one);
        expect(await driver.claim(runner)).toEqual([next]);
        await answer(run_id);
        expect(await driver.statuses(run_id, next)).toEqual(["running", "claimed"]);
      });
    });

    describe("answering", () => {
      it("orders the answer to the runner, and logs who decided what", async () => {
        const runner = await driver.register("r");
        const run_id = await createWaitingRun(runner);
        const answerFields = { decision: "allow", input: { command: "pwd" }, remember: "session" } as const;
        expect(await answer(run_id, "q", answerFields)).toMatchObject({
          ok: true,
          question: {
            decision: "allow",
            answered_by: "ann",
            answered_at: now().toISOString(),
            edited_input: { command: "pwd" },
          },
        });
        expect(await driver.statuses(run_id)).toEqual(["running"]);
        const { orders } = await driver.poll(runner, 0, "orders");
        expect(orders).toMatchObject([{ run_id, attempt: 1, answer: { request_id: "q", answer: answerFields } }]);
        expect(await driver.event(run_id, -2)).toEqual({
          type: "permission_decision",
          request_id: "q",
          by: "ann",
          ...answerFields,
        });
        expect(await driver.event(run_id, -1)).toMatchObject({ type: "status", status: "running" });
        // An event of the runner that was already on its way changes nothing.
        await driver.append(runner, run_id, 1, 2, { type: "status", status: "waiting", reason: "shell" });
        expect(await driver.statuses(run_id)).toEqual(["running"]);
        expect(await driver.finish(runner, run_id, 1, { last_n: 2 })).toMatchObject({ ok: true });
        const resumed = await driver.submit({ session_id: "s", mode: "resume", attended: true }, chat);
        const { claims } = await driver.poll(runner, 1);
        expect(claims[0]?.invocation).toMatchObject({ run_id: resumed, granted_tools: ["shell"], answers: [] });
      });

      it("accepts the first of two answers, even in one transaction, and names who gave it", async () => {
        const runner = await driver.register("r", { slots: 9 });
        const [one, two] = [await createWaitingRun(runner), await createWaitingRun(runner, chat, "t")];
        await answer(one, "q", { decision: "deny", message: "no" });
        expect(await answer(one, "q", allow, "bob")).toMatchObject({
          ok: false,
          conflict: "answered",
          question: { decision: "deny", answered_by: "ann", message: "no" },
        });
        const by = (name: string) =>
          ({ op: "answer_question", run_id: two, request_id: "q", answer: allow, by: name }) as const;
        const results = await store.apply([by("bob"), by("eve")]);
        expect(results).toMatchObject([{ ok: true }, { conflict: "answered", question: { answered_by: "bob" } }]);
        expect((await driver.poll(runner, 0)).orders).toHaveLength(2);
        expect(await answer(one, "unknown")).toEqual({ ok: false, conflict: "not_found" });
        expect(await answer("no run")).toEqual({ ok: false, conflict: "not_found" });
      });

      it("keeps an answer for the next attempt if the runner is lost, and asks unanswered questions again", async () => {
        const runner = await driver.register("r");
        const run_id = await createWaitingRun(runner);
        await driver.append(runner, run_id, 1, 2, request("r"));
        await driver.save(runner, run_id, 1, 3, "state");
        advance(10_001);
        await rescue();
        expect(await driver.statuses(run_id)).toEqual(["pending"]);
        expect(await answer(run_id, "q", { decision: "deny", message: "no" })).toMatchObject({ ok: true });
        const other = await driver.register("other");
        const { claims } = await driver.poll(other, 1);
        expect(claims[0]?.invocation).toMatchObject({
          attempt: 2,
          continues: true,
          answers: [
            { request_id: "q", tool: "shell", input: { command: "ls" }, answer: { decision: "deny", message: "no" } },
          ],
        });
        expect(await inbox()).toEqual([]);
        expect(await answer(run_id, "r")).toMatchObject({ conflict: "closed", question: { decision: "superseded" } });
        await driver.append(other, run_id, 2, 1, request("r"));
        expect(await answer(run_id, "r")).toMatchObject({ ok: true, question: { attempt: 2 } });
      });

      it("closes open questions when the run ends or is stopped", async () => {
        const runner = await driver.register("r", { slots: 9 });
        const [endedRun, stopped] = [await createWaitingRun(runner), await createWaitingRun(runner, chat, "t")];
        await driver.finish(runner, endedRun, 1, { last_n: 1 });
        await store.apply([{ op: "stop_runs", run_ids: [stopped], reason: "user", by: "ann" }]);
        expect(await inbox()).toEqual([]);
        for (const run_id of [endedRun, stopped])
          expect(await answer(run_id)).toMatchObject({ conflict: "closed", question: { decision: "superseded" } });
        expect(await driver.event(endedRun, -1)).toMatchObject({ type: "result" });
      });
    });

    describe("input", () => {
      it("goes to the runner of an active run, and into its log", async () => {
        const runner = await driver.register("r");
        const send = async (run_id: string) =>
          (await store.apply([{ op: "send_input", run_id, text: "hi", by: "ann" }]))[0];
        const run_id = await driver.submit({ session_id: "s" }, chat);
        expect(await send(run_id)).toMatchObject({ ok: false, conflict: "wrong_state", status: "pending" });
        expect(await send("none")).toEqual({ ok: false, conflict: "not_found" });
        await driver.claim(runner);
        expect(await send(run_id)).toMatchObject({ ok: true });
        expect((await driver.poll(runner, 0)).orders).toMatchObject([{ run_id, input: { text: "hi", seq: 3 } }]);
        expect((await store.read.events(run_id, 2, 1))[0]).toMatchObject({ seq: 3, event: { subtype: "user_input" } });
        expect(await driver.event(run_id, -1)).toEqual({
          type: "system",
          subtype: "user_input",
          data: { text: "hi", by: "ann" },
        });
        await driver.finish(runner, run_id, 1);
        expect(await send(run_id)).toMatchObject({ conflict: "wrong_state", status: "completed" });
      });

      it("is passed to the run's next attempt, whether or not its runner had it, and to no other run", async () => {
        const runner = await driver.register("r", { slots: 9 });
        const run_id = await driver.submit({ session_id: "s" }, chat);
        const other = await driver.submit({ session_id: "other" }, chat);
        await driver.claim(runner, 2);
        const send = (to: string, text: string) => store.apply([{ op: "send_input", run_id: to, text, by: "ann" }]);
        await send(run_id, "one");
        await send(other, "for the other");
        await driver.poll(runner, 0);
        await driver.append(runner, run_id, 1, 1, { type: "system", subtype: "user_input", data: { text: "forged" } });
        await driver.save(runner, run_id, 1, 2, "state");
        await send(run_id, 'two: 100% "_"');
        await store.apply([{ op: "leave_runner", runner_id: runner.runner_id, epoch: runner.epoch }]);
        const next = await driver.register("r", { slots: 9 });
        const claim = (await driver.poll(next, 2)).claims.find((claimed) => claimed.run_id === run_id);
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
        const { orders } = await driver.poll(next, 0);
        expect(orders).toMatchObject([{ input: { text: "three" } }]);
      });
    });

    describe("expiry", () => {
      it("fails a run whose question nobody answered: at once if it is parked, by an order if it waits", async () => {
        const runner = await driver.register("r", { slots: 9 });
        const impatientAgent = createAgent("brief", { type: "autonomous", command: null, answer_within_seconds: 5 });
        const [waitingRun, parkedRun] = [
          await createWaitingRun(runner, impatientAgent),
          await createParkedRun(runner, impatientAgent, "t"),
        ];
        advance(4999);
        await rescue();
        expect(await driver.statuses(waitingRun, parkedRun)).toEqual(["waiting", "parked"]);
        advance(1);
        expect(await rescue()).toMatchObject([{ failed: [parkedRun] }]);
        expect(await store.read.run(parkedRun)).toMatchObject({ status: "failed", reason: "approval_expired" });
        expect(await driver.statuses(waitingRun)).toEqual(["stopping"]);
        expect((await driver.poll(runner, 0)).orders).toMatchObject([{ run_id: waitingRun, stop: "approval_expired" }]);
        expect(await answer(waitingRun)).toMatchObject({ conflict: "closed", question: { decision: "expired" } });
        advance(10_001);
        await rescue();
        expect(await store.read.run(waitingRun)).toMatchObject({ status: "failed", reason: "approval_expired" });
      });
    });

    describeParked(opened);
  });
}
