import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, it } from "vitest";
import { createInvocation } from "../../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../../test/fixtures/execute/open-context.ts";
import type { Script, Turn } from "../../../../test/model-server/script.ts";
import { startModelServer } from "../../../../test/model-server/server.ts";
import type { Agent } from "../../../model/agent.ts";
import type { Answer, Invocation, Question, RunContext } from "../../../model/executor.ts";
import { createModelExecutor } from "./model-executor.ts";

const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const clean of cleanups.splice(0).toReversed()) await clean();
});

let idCount = 0;
const executor = createModelExecutor({
  env: { ANTHROPIC_API_KEY: "key" },
  newId: () => `conversation-${++idCount}`,
  version: "0",
  checkInput: async (_schema, value) =>
    typeof (value as { command: unknown }).command === "string" ? [] : [{ path: "command", message: "not a string" }],
});

const call = (name: string, input: Record<string, unknown>) => ({ name, input, exact: true as const });
const append = (word: string) => call("command_run", { command: `echo ${word} >> log` });

class Killed extends Error {}

/** Runs one run in one work directory, with as many attempts as the test needs. */
async function open(
  script: readonly Turn[] | Extract<Script, (...args: never) => unknown>,
  agent: Partial<Agent> = {},
) {
  const server = await startModelServer(typeof script === "function" ? script : [{ when: /^/, turns: script }]);
  const opened = await openContext();
  cleanups.push(server.stop, opened.close);
  const questions: Question[] = [];
  let saveCount = 0;
  const logPath = join(opened.directory, "work", "log");
  const readLog = (): string[] => (existsSync(logPath) ? readFileSync(logPath, "utf8").trim().split("\n") : []);

  async function attempt(
    answer: Answer | ((question: Question) => Answer | Promise<Answer>),
    overrides: Partial<Invocation> = {},
    diesAtSave: { at: number; stored: boolean } = { at: Infinity, stored: true },
    context: Partial<RunContext> = {},
  ) {
    saveCount = 0;
    const { session } = opened.context;
    const invocation = createInvocation(
      "r1",
      { type: "autonomous", provider: "anthropic", model: "m", ...agent },
      { prompt: "do it", attended: true, executor_config: { base_url: server.url } },
    );
    return executor
      .run(
        { ...invocation, continues: opened.saved.state !== null, ...overrides },
        {
          ...opened.context,
          async ask(question) {
            questions.push(question);
            return typeof answer === "function" ? answer(question) : answer;
          },
          session: {
            load: session.load,
            async save(...given) {
              saveCount += 1;
              if (saveCount < diesAtSave.at || diesAtSave.stored) await session.save(...given);
              if (saveCount >= diesAtSave.at) throw new Killed();
            },
          },
          ...context,
        },
      )
      .catch((error: unknown) => {
        if (error instanceof Killed) return "killed" as const;
        throw error;
      });
  }
  const listOutputs = () =>
    opened.events.flatMap((event) => (event.type === "tool_result" ? [JSON.stringify(event.output)] : []));
  const listUserMessages = () =>
    server.requests.map(({ messages }) =>
      messages.flatMap(({ role, text }) => (role === "user" && text ? [text] : [])),
    );
  /** The session's state as text. */
  const readSavedState = (): string => Buffer.from(opened.saved.state?.bytes ?? []).toString();
  return {
    attempt,
    questions,
    readLog,
    readSavedState,
    listOutputs,
    listUserMessages,
    server,
    events: opened.events,
    getSaveCount: () => saveCount,
  };
}

const callToolsOnce: Extract<Script, (...args: never) => unknown> = ({ messages }) =>
  messages.some(({ role }) => role === "assistant") ? { text: "Done." } : { tools: [append("one"), append("two")] };
const scriptWithTwoCalls: Turn[] = [{ tools: [append("one"), append("two")] }, { text: "Done." }];

it.each([true, false])(
  "asks again after its runner died at any save (stored: %s), and runs no call without approval and none twice",
  async (stored) => {
    for (let index = 1; ; index += 1) {
      const { attempt, questions, readLog, listOutputs, getSaveCount } = await open(scriptWithTwoCalls);
      /** Checks that a tool has not run before it is approved. */
      const approve = ({ input }: Question): Answer => {
        const word = (input as { command: string }).command.includes("one") ? "one" : "two";
        expect(readLog()).not.toContain(word);
        return { decision: "allow" };
      };
      const first = await attempt(approve, {}, { at: index, stored });
      const wasKilled = getSaveCount() >= index;
      const outcome = first === "killed" ? await attempt(approve) : first;
      expect(outcome).toMatchObject({ status: "completed", text: "Done." });
      const unknown = listOutputs().filter((output) => output.includes("effect_unknown"));
      expect(unknown.length).toBeLessThanOrEqual(1);
      expect(readLog().length + unknown.length).toBeGreaterThanOrEqual(2);
      expect(new Set(readLog()).size).toBe(readLog().length);
      expect(new Set(questions.map(({ request_id }) => request_id)).size).toBeLessThanOrEqual(2);
      if (!wasKilled) return;
    }
  },
);

it("parks before the second call and continues with the person's edit, without repeating the first call", async () => {
  const { attempt, questions, readLog, listOutputs, events, server } = await open(scriptWithTwoCalls);
  const parked = await attempt(({ input }) =>
    JSON.stringify(input).includes("one") ? { decision: "allow" } : { decision: "park" },
  );
  expect(parked).toMatchObject({ status: "parked", why: "approval", message: expect.stringContaining("command.run") });
  expect(readLog()).toEqual(["one"]);
  const edited = { command: "echo other >> log" };
  expect(await attempt({ decision: "allow", input: edited })).toMatchObject({ status: "completed" });
  expect(readLog()).toEqual(["one", "other"]);
  expect(questions.map(({ request_id }) => request_id)).toEqual([
    questions[0]!.request_id,
    questions[1]!.request_id,
    questions[1]!.request_id,
  ]);
  expect(questions[2]).toMatchObject({ tool: "command.run", effect: "execute", input_schema: { type: "object" } });
  expect(events).toContainEqual({
    type: "system",
    subtype: "input_edited",
    data: { tool_use_id: questions[1]!.request_id, name: "command.run", input: edited },
  });
  expect(listOutputs()[1]).toContain('"input_changed_by_a_person":{"command":"echo other >> log"}');
  expect(server.requests).toHaveLength(2);
});

it("does not call a tool whose edited input does not match its schema", async () => {
  const { attempt, readLog, listOutputs } = await open([{ tool: append("one") }, { text: "Done." }]);
  expect(await attempt({ decision: "allow", input: { command: 1 } })).toMatchObject({ status: "completed" });
  expect(readLog()).toEqual([]);
  expect(listOutputs()).toEqual([
    expect.stringMatching(/permission_denied.*which no longer matches the schema \(command: not a string\)/),
  ]);
});

it("does not make a call in the next run if nobody allowed it in the previous run", async () => {
  const { attempt, readLog, listOutputs } = await open(callToolsOnce);
  expect(await attempt({ decision: "stop", message: "enough" })).toMatchObject({
    status: "failed",
    reason: "permission_denied",
    message: "enough",
  });
  const next = { run_id: "r2", mode: "resume", continues: false, prompt: "and now?" } as const;
  expect(await attempt({ decision: "allow" }, next)).toMatchObject({ status: "completed" });
  expect(readLog()).toEqual([]);
  expect(listOutputs()).toEqual([expect.stringContaining("cancelled"), expect.stringContaining("cancelled")]);
});

it("saves nothing before a call that needs no person's answer", async () => {
  const unattended = await open([{ tool: append("one") }, { text: "Done." }]);
  await unattended.attempt({ decision: "deny", message: "no" }, { attended: false });
  // The saves are: the init event, two answers, and one result.
  expect(unattended.getSaveCount()).toBe(4);
  const granted = await open([{ tool: append("one") }, { text: "Done." }]);
  await granted.attempt({ decision: "allow" }, { granted_tools: ["command.run"] });
  expect(granted.getSaveCount()).toBe(4);
  const remembered = await open([{ tools: [append("one"), append("two")] }, { text: "Done." }]);
  await remembered.attempt({ decision: "allow", remember: "session" });
  // The additional saves are: the first call waits, and the first call is approved; and the second call's result.
  expect(remembered.getSaveCount()).toBe(7);
});

it("gets its budget again only when it is resumed", async () => {
  const createListTurn = (n: number): Turn => ({ tool: call("file_list", { pattern: `*.${n}` }) });
  const { attempt, server } = await open(
    [createListTurn(1), createListTurn(2), createListTurn(3), createListTurn(4), { text: "Done." }],
    {
      budget: { turns: 2 },
    },
  );
  expect(await attempt({ decision: "deny" })).toMatchObject({ status: "parked", why: "budget" });
  expect(server.requests).toHaveLength(2);
  expect(await attempt({ decision: "deny" })).toMatchObject({ status: "parked", why: "budget" });
  expect(server.requests).toHaveLength(4);
  expect(await attempt({ decision: "deny" })).toMatchObject({ status: "completed", text: "Done." });
});

/** Simulates a person who sends messages on demand. */
function createSender() {
  const queue: string[] = [];
  let seq = 0;
  let wake = (): void => undefined;
  return {
    say(text: string) {
      queue.push(text);
      wake();
    },
    input: (async function* () {
      for (;;) {
        while (queue.length > 0) yield { text: queue.shift()!, seq: ++seq };
        await new Promise<void>((resolve) => (wake = resolve));
      }
    })(),
  };
}

it("sends a person's messages with the next request, and continues the run for a message that follows its last answer", async () => {
  const { say: send, input } = createSender();
  const { attempt, listUserMessages, server, readSavedState } = await open(({ messages }) => {
    const answers = messages.filter(({ role }) => role === "assistant").length;
    if (answers === 0) return { tool: append("one") };
    if (answers === 1) {
      send("one more thing");
      return { text: "Done." };
    }
    return { text: "Done again." };
  });
  const ask = async (): Promise<Answer> => {
    send("be quick");
    send("and careful");
    await expect.poll(readSavedState).toContain("and careful");
    return { decision: "allow" };
  };
  expect(await attempt(ask, {}, undefined, { input })).toMatchObject({ status: "completed", text: "Done again." });
  expect(listUserMessages()).toEqual([
    ["do it"],
    ["do it", "be quick\n\nand careful"],
    ["do it", "be quick\n\nand careful", "one more thing"],
  ]);
  // The service accepts one message with results and text, or two in a row.
  expect(server.requests[1]!.messages.flatMap(({ tool_results }) => tool_results)).toHaveLength(1);
});

it("keeps undelivered messages when it parks and when its runner dies", async () => {
  const { say: send, input } = createSender();
  const { attempt, listUserMessages, readSavedState } = await open(callToolsOnce);
  const parked = await attempt(
    async () => {
      send("be careful");
      await expect.poll(readSavedState).toContain("be careful");
      return { decision: "park" };
    },
    {},
    undefined,
    { input },
  );
  expect(parked).toMatchObject({ status: "parked" });
  expect(await attempt({ decision: "allow" })).toMatchObject({ status: "completed" });
  expect(listUserMessages()).toEqual([["do it"], ["do it", "be careful"]]);
});
