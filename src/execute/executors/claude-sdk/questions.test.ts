import { afterAll, expect, test } from "vitest";
import {
  getConversationText,
  createSessionId,
  openClaudeSdk,
  type SdkRun,
} from "../../../../test/fixtures/execute/claude-sdk.ts";
import type { Answer, Question } from "../../../model/executor.ts";

const createFileCall = (file: string) => ({
  name: "Bash",
  input: { command: `env -i /bin/sh -c '>${file}'` },
  exact: true as const,
});
const questionInput = {
  questions: [
    {
      question: "Which?",
      header: "W",
      multiSelect: false,
      options: [
        { label: "A", description: "a" },
        { label: "B", description: "b" },
      ],
    },
  ],
};

const harness = openClaudeSdk([
  { when: "run it", turns: [{ tool: createFileCall("ran") }, { text: "I am done." }] },
  { when: "run both", turns: [{ tools: [createFileCall("one"), createFileCall("two")] }, { text: "I am done." }] },
  {
    when: "run twice",
    turns: [{ tool: createFileCall("one") }, { tool: createFileCall("two") }, { text: "I am done." }],
  },
  {
    when: "ask me",
    turns: [{ tool: { name: "AskUserQuestion", input: questionInput, exact: true } }, { text: "You said so." }],
  },
  {
    when: "read outside",
    turns: [{ tool: { name: "read_file", input: { path: "/etc/hostname" } } }, { text: "Read." }],
  },
  {
    when: "write it",
    turns: [{ tool: { name: "write_file", input: { path: "a.txt", content: "hi" } } }, { text: "Written." }],
  },
  {
    when: /settings|continues now/,
    turns: [
      { tool: { name: "write_file", input: { path: ".claude/settings.json", content: "{}" } } },
      { text: "Settings written." },
    ],
  },
  { when: "Continue from where you left off.", turns: [{ text: "I went on." }] },
]);
afterAll(async () => (await harness).close());

/** Runs the prompt attended, and answers the run's questions in order. */
async function runAttended(prompt: string, answers: Answer[], overrides: SdkRun = {}) {
  const questions: Question[] = [];
  const { run: start, server } = await harness;
  const requestsBefore = server.requests.length;
  const result = await start(prompt, {
    ...overrides,
    invocation: { attended: true, ...overrides.invocation },
    context: {
      async ask(question) {
        questions.push(question);
        return answers.shift() ?? { decision: "deny", message: "asked too often" };
      },
      ...overrides.context,
    },
  });
  return { ...result, questions, requests: server.requests.slice(requestsBefore) };
}

test("lets a person allow a call and change its input", async () => {
  const result = await runAttended("run it", [
    { decision: "allow", input: { command: "env -i /bin/sh -c '>changed'" } },
  ]);
  expect(result.outcome).toMatchObject({ status: "completed", text: "I am done." });
  expect(result.questions).toMatchObject([
    { tool: "Bash", effect: "execute", input: createFileCall("ran").input, input_schema: { required: ["command"] } },
  ]);
  const use = result.events.find((event) => event.type === "tool_use");
  expect(result.questions[0]!.request_id).toBe(use!.tool_use_id);
  expect([await result.read("ran"), await result.read("changed")]).toEqual([null, ""]);
});

test("tells the model why a person denied a call, and fails a run that did nothing else", async () => {
  const result = await runAttended("run it", [{ decision: "deny", message: "Not on a Friday." }]);
  expect(
    result.requests
      .at(-1)!
      .messages.flatMap(({ tool_results }) => tool_results)
      .join(),
  ).toContain("Not on a Friday.");
  expect(result.outcome).toMatchObject({ status: "failed", reason: "permission_denied", text: "I am done." });
  expect(await result.read("ran")).toBeNull();
});

test("lets a person stop the run by their answer, without another request", async () => {
  const result = await runAttended("run it", [{ decision: "stop", message: "Leave it." }]);
  expect(result.outcome).toMatchObject({ status: "failed", reason: "permission_denied", message: "Leave it." });
  expect([result.requests.length, await result.read("ran")]).toEqual([1, null]);
});

test("parks a run whose question is open, and makes the call on another runner once it is allowed", async () => {
  const session_id = createSessionId();
  const parked = await runAttended("run both", [{ decision: "park" }, { decision: "park" }], {
    invocation: { session_id },
  });
  expect(parked.outcome).toEqual({ status: "parked", why: "approval" });
  expect([await parked.read("one"), await parked.read("two"), parked.requests.length]).toEqual([null, null, 1]);

  const continued = await runAttended("run both", [{ decision: "allow" }], {
    state: parked.state,
    invocation: { session_id, continues: true, attempt: 2 },
  });
  // Claude Code must not make the call before the hooks are registered.
  expect(continued.args).toContain("--await-initialize");
  expect(continued.questions.map(({ request_id }) => request_id)).toEqual([parked.questions[0]!.request_id]);
  expect(continued.outcome).toMatchObject({ status: "completed", text: "I went on." });
  expect([await continued.read("one"), await continued.read("two"), continued.requests.length]).toEqual(["", null, 1]);
  expect(continued.requests[0]!.messages.flatMap(({ tool_results }) => tool_results).join()).toContain(
    "Make this call again after that one is answered",
  );
});

test("does not make a deferred call in a later run of the session", async () => {
  const session_id = createSessionId();
  const parked = await runAttended("run it", [{ decision: "park" }], { invocation: { session_id } });
  for (const isAttended of [true, false]) {
    const next = await runAttended("write it", [{ decision: "allow" }], {
      state: parked.state,
      agent: { permissions: { mode: "bypassPermissions" } },
      invocation: { mode: "resume", session_id, attended: isAttended },
    });
    expect(next.outcome).toMatchObject({ status: "completed", text: "Written." });
    expect([next.questions, await next.read("ran"), next.requests.length]).toEqual([[], null, 2]);
  }
});

test("gives the model the person's answer to its question", async () => {
  const result = await runAttended("ask me", [
    { decision: "allow", input: { ...questionInput, answers: { "Which?": "B" } } },
  ]);
  expect(result.outcome).toMatchObject({ status: "completed", text: "You said so." });
  expect(
    result.requests
      .at(-1)!
      .messages.flatMap(({ tool_results }) => tool_results)
      .join(),
  ).toContain('"Which?"="B"');
  const unanswered = await runAttended("ask me", [{ decision: "allow" }]);
  expect(
    unanswered.requests
      .at(-1)!
      .messages.flatMap(({ tool_results }) => tool_results)
      .join(),
  ).toContain("gave no answer");
});

test("asks only about calls that the mode does not allow", async () => {
  const edit = await runAttended("write it", []);
  expect([edit.questions, await edit.read("a.txt")]).toEqual([[], "hi"]);
  const strict = await runAttended("write it", [{ decision: "allow" }], {
    agent: { permissions: { mode: "default" } },
  });
  expect([strict.questions.map(({ effect }) => effect), await strict.read("a.txt")]).toEqual([["edit"], "hi"]);
});

test("asks nobody and changes nothing in plan mode, and leaves rules about a tool's input to Claude Code", async () => {
  const plan = await runAttended("write it", [], { agent: { permissions: { mode: "plan" } } });
  expect([plan.questions, await plan.read("a.txt")]).toEqual([[], null]);
  expect(plan.outcome).toMatchObject({ status: "failed", reason: "permission_denied" });
  const listedTool = await runAttended("run it", [], {
    agent: { permissions: { mode: "acceptEdits", allowed_tools: ["Bash(env *)"] } },
  });
  expect([listedTool.questions, await listedTool.read("ran")]).toEqual([[], ""]);
});

test("asks about a read outside the work directory", async () => {
  const outside = await runAttended("read outside", [{ decision: "allow" }]);
  expect(outside.questions).toMatchObject([{ tool: "Read", effect: "read" }]);
  expect(outside.outcome).toMatchObject({ status: "completed" });
});

test("parks on a question from Claude Code itself and applies the answer after continuing", async () => {
  const session_id = createSessionId();
  const parked = await runAttended("write the settings", [{ decision: "park" }], { invocation: { session_id } });
  expect(parked.outcome).toEqual({ status: "parked", why: "approval" });
  expect([await parked.read(".claude/settings.json"), parked.requests.length]).toEqual([null, 1]);
  const continued = await runAttended("write the settings", [{ decision: "allow" }], {
    state: parked.state,
    invocation: { session_id, continues: true, attempt: 2 },
  });
  expect(getConversationText(continued.requests[0]!)).toContain("The run was interrupted and continues now.");
  expect(continued.questions[0]!.request_id).toBe(parked.questions[0]!.request_id);
  expect(await continued.read(".claude/settings.json")).toBe("{}");
});
