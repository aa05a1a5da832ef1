import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { sampleAgent, serve } from "../../../test/fixtures/dispatch/host.ts";
import { runnerFixture } from "../../../test/fixtures/execute/open-runner.ts";
import { poll } from "../../../test/fixtures/execute/registered.ts";
import { eachEngine } from "../../../test/fixtures/record/each-engine.ts";
import { type ModelServer, startModelServer } from "../../../test/model-server/server.ts";
import type { Decision, Executor } from "../../model/executor.ts";
import type { AnswerQuestion } from "../../model/question.ts";
import { hasEnded } from "../../model/states.ts";
import { preferMs } from "../../record/ops/place-run.ts";
import { start } from "../../process/start.ts";
import { createCommandExecutor } from "../executors/command-executor.ts";
import { createModelExecutor } from "../executors/loop/model-executor.ts";
import { loadModuleExecutor } from "../executors/module-executor.ts";

const cleanups: (() => unknown)[] = [];

let model: ModelServer;
let cacheDirectory: string;
beforeAll(async () => {
  cacheDirectory = mkdtempSync(join(tmpdir(), "drover-asking-"));
  model = await startModelServer(({ messages }) => {
    const last = messages.at(-1)!;
    // The model calls tools until it receives a message.
    if (messages.some(({ text }) => text.includes("hear"))) {
      const input = { pattern: `*.${messages.length}` };
      if (last.text.includes("look")) return { text: last.text };
      return { tool: { name: "file_list", input, exact: true }, slow_ms_per_chunk: 10 };
    }
    if (messages.some(({ role }) => role === "assistant")) return { text: last.tool_results.join() };
    return { tool: { name: "command_run", input: { command: "echo did-$((40 + 1))" }, exact: true } };
  });
});
afterAll(async () => {
  rmSync(cacheDirectory, { recursive: true, force: true });
  await model.stop();
});

let ids = 0;
/** Each asks once, then prints did-41, or did-42 if a person edited the input. */
const subjects: Record<string, { make(): Promise<Executor>; edited: unknown }> = {
  "the model executor": {
    edited: { command: "echo did-$((40 + 2))" },
    make: async () =>
      createModelExecutor({
        env: { ANTHROPIC_API_KEY: "key" },
        newId: () => `conversation-${++ids}`,
        version: "0",
        checkInput: async () => [],
      }),
  },
  "an executor from a module": {
    edited: { n: 42 },
    make: () =>
      loadModuleExecutor({
        module: resolve("test/fixtures/execute/module-executor.ts"),
        runnerDirectory: cacheDirectory,
        cacheDirectory,
        config: {},
        start,
        env: process.env,
      }),
  },
  "a program": {
    edited: { n: 42 },
    make: async () =>
      createCommandExecutor({
        runnerDirectory: cacheDirectory,
        variables: { allowed: [], env: process.env },
        name: "program",
        command: `${process.execPath} ${resolve("test/fixtures/execute/command-executor.mjs")}`,
        can: { ask: true, input: true, state: true, park: true },
      }),
  },
};

eachEngine("questions with a real coordinator", (record) => {
  // This hook runs before the record is closed.
  afterEach(async () => {
    for (const clean of cleanups.splice(0).toReversed()) await clean();
  });

  describe.each(Object.entries(subjects))("%s", (_name, { make, edited }) => {
    async function setUp(park_after_seconds = 600) {
      const host = serve(record.store);
      await host.dispatcher.start();
      cleanups.push(host.close);
      host.agents.setFileAgents([
        sampleAgent({
          name: "asking",
          type: "autonomous",
          provider: "anthropic",
          model: "m",
          park_after_seconds,
          max_turns: 100_000,
        }),
      ]);
      const executor = await make();
      const open = async (name: string, port = host.port) => {
        const fixture = runnerFixture({ port, executor, slots: 1 });
        cleanups.push(fixture.remove);
        const { registration } = fixture.options();
        const runner = await fixture.open({
          registration: {
            ...registration,
            name,
            runner_key: `0123456789abcdef-${name}`,
            executor: { type: "test", config: { base_url: model.url } },
          },
        });
        cleanups.push(runner.stop);
        return runner;
      };
      const expectStatus = (run_id: string, status: string) =>
        poll(async () => (await host.run(run_id)).status).toBe(status);
      const waitForEnd = async (run_id: string) => {
        await poll(async () => hasEnded((await host.run(run_id)).status)).toBe(true);
        return host.run(run_id);
      };
      const question = async (run_id: string) => {
        const event = (await events(run_id)).find(({ type }) => type === "permission_request");
        return (await record.store.read.question(run_id, (event as { request_id: string }).request_id))!;
      };
      const answer = async (run_id: string, given: Decision) => {
        const { request_id } = await question(run_id);
        const op: AnswerQuestion = { op: "answer_question", run_id, request_id, answer: given, by: "bob" };
        const [result] = await record.store.apply([op]);
        return result;
      };
      const events = async (run_id: string) => (await host.events(run_id)).map(({ event }) => event);
      const ask = () => host.submit({ agent_name: "asking", prompt: "ask", attended: true });
      return { ...host, open, expectStatus, waitForEnd, question, answer, events, ask };
    }

    it("uses the allowed or edited input, and records who decided", async () => {
      const { open, ask, expectStatus, answer, waitForEnd, events, question } = await setUp();
      await open("one");
      const id = await ask();
      await expectStatus(id, "waiting");
      expect(await question(id)).toMatchObject({ decision: null, input: expect.anything(), effect: "execute" });
      expect(await answer(id, { decision: "allow", input: edited })).toMatchObject({ ok: true });
      expect(await answer(id, { decision: "deny" })).toMatchObject({ conflict: "answered" });
      expect(await waitForEnd(id)).toMatchObject({
        status: "completed",
        attempt: 1,
        result_text: expect.stringContaining("did-42"),
      });
      expect(await events(id)).toContainEqual(
        expect.objectContaining({ type: "permission_decision", decision: "allow", by: "bob", input: edited }),
      );
    });

    it.each([
      [{ decision: "deny", message: "not on a Friday" }, { status: "completed" }],
      [{ decision: "stop" }, { status: "failed", reason: "permission_denied" }],
    ] as const)("does not use the tool when a person answers %j", async (given, expected) => {
      const { open, ask, expectStatus, answer, waitForEnd, events } = await setUp();
      await open("one");
      const id = await ask();
      await expectStatus(id, "waiting");
      await answer(id, given);
      const run = await waitForEnd(id);
      expect(run).toMatchObject(expected);
      if (given.decision === "deny") expect(run.result_text).toContain("not on a Friday");
      expect(JSON.stringify([run, await events(id)])).not.toContain("did-41");
    });

    it("parks, and continues with the answer on another runner without counting a failure", async () => {
      const { open, ask, expectStatus, answer, waitForEnd, events } = await setUp(0.05);
      const firstRunner = await open("one");
      const id = await ask();
      await expectStatus(id, "parked");
      await firstRunner.stop();
      await open("two");
      await answer(id, { decision: "allow" });
      expect(await waitForEnd(id)).toMatchObject({
        status: "completed",
        attempt: 2,
        failures: 0,
        result_text: expect.stringContaining("did-41"),
      });
      // The question was asked only once.
      const questions = (await events(id)).filter(({ type }) => type === "permission_request");
      expect(questions).toHaveLength(1);
    });

    it("takes no slot while it waits, and parks when its runner shuts down", async () => {
      const { open, ask, expectStatus, answer, waitForEnd } = await setUp();
      const runner = await open("one");
      const first = await ask();
      await expectStatus(first, "waiting");
      const second = await ask();
      await expectStatus(second, "waiting");
      await runner.drain();
      await expectStatus(first, "parked");
      await expectStatus(second, "parked");
      await open("two");
      for (const id of [first, second]) await answer(id, { decision: "allow" });
      for (const id of [first, second])
        expect(await waitForEnd(id)).toMatchObject({
          status: "completed",
          result_text: expect.stringContaining("did-41"),
        });
    });

    it("receives a person's message", async () => {
      const { open, submit, expectStatus, waitForEnd, events } = await setUp();
      await open("one");
      const id = await submit({ agent_name: "asking", prompt: "hear", attended: true });
      await expectStatus(id, "running");
      await record.store.apply([{ op: "send_input", run_id: id, text: "look behind you", by: "bob" }]);
      expect(await waitForEnd(id)).toMatchObject({ status: "completed", result_text: "look behind you" });
      expect(await events(id)).toContainEqual(expect.objectContaining({ type: "system", subtype: "user_input" }));
    });

    it("receives a message that was sent before its runner was lost, even if that runner never got it", async () => {
      const { port, open, submit, expectStatus, waitForEnd } = await setUp();
      const portWithoutOrders: typeof port = {
        ...port,
        poll: async (...args) => ({ ...(await port.poll(...args)), orders: [] }),
      };
      const firstRunner = await open("one", portWithoutOrders);
      const id = await submit({ agent_name: "asking", prompt: "hear", attended: true });
      await expectStatus(id, "running");
      await record.store.apply([{ op: "send_input", run_id: id, text: "look behind you", by: "bob" }]);
      await firstRunner.stop();
      // The state directory that has its session is no longer preferred.
      record.advance(preferMs);
      await open("two");
      const expectedText = expect.stringContaining("look behind you");
      expect(await waitForEnd(id)).toMatchObject({ status: "completed", attempt: 2, result_text: expectedText });
    });
  });
});
