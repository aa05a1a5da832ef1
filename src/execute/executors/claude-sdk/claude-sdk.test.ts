import { readFileSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { getConversationText, createSessionId, openClaudeSdk } from "../../../../test/fixtures/execute/claude-sdk.ts";
import type { RunEvent } from "../../../model/event.ts";

const harness = openClaudeSdk([
  {
    when: "write it",
    turns: [
      { text: "I will write it.", tool: { name: "write_file", input: { path: "hello.txt", content: "hi" } } },
      { text: "hello.txt is there." },
    ],
  },
  { when: "what was first?", turns: [{ text: "A file." }] },
  { when: "and in a branch?", turns: [{ text: "The same file." }] },
  {
    when: "run a command",
    turns: [
      { tool: { name: "Bash", input: { command: "env -i /bin/sh -c '>ran'" }, exact: true } },
      { text: "I tried." },
    ],
  },
  { when: "never end", turns: [{ tool: { name: "shell", input: { command: "echo again" } } }] },
  { when: "refuse the key", turns: [{ error: { status: 401, type: "authentication_error", message: "bad key" } }] },
  { when: "too much", turns: [{ error: { status: 429, type: "rate_limit_error", message: "slow down" } }] },
  { when: "break", turns: [{ error: { status: 500, type: "api_error", message: "broken" } }] },
  { when: "cut it", turns: [{ text: "This text is cut in the middle of it.", cut_after_bytes: 700 }] },
  { when: "hang", turns: [{ hang: true }] },
  {
    when: "wait for it",
    turns: [{ tool: { name: "shell", input: { command: "touch begun; until test -e never; do sleep 1; done" } } }],
  },
]);
afterAll(async () => (await harness).close());

const listTypes = (events: readonly RunEvent[]): string[] =>
  events.map((event) => (event.type === "system" ? `system:${event.subtype}` : event.type));
const getRaw = (event: RunEvent): { type?: string; session_id?: string } | undefined =>
  "raw" in event ? (event.raw as { type?: string; session_id?: string } | undefined) : undefined;

test("logs each message in full, passes it on, and counts usage in increments", async () => {
  const session_id = createSessionId();
  const messages: unknown[] = [];
  const result = await (
    await harness
  ).run("write it", {
    invocation: { session_id },
    host: { onMessage: async (message) => void messages.push(message) },
  });
  expect(result.outcome).toEqual({ status: "completed", exit_code: 0, text: "hello.txt is there." });
  expect(await result.read("hello.txt")).toBe("hi");
  expect(result.kept).toEqual(["hello.txt"]);
  expect(listTypes(result.events).filter((type) => type !== "system:claude_status")).toEqual([
    "progress",
    "system:init",
    "assistant",
    "tool_use",
    "tool_result",
    "assistant",
    "system:result",
  ]);
  // No message is missing, and the order is the same.
  expect(result.events.flatMap((event) => getRaw(event) ?? [])).toEqual(messages);
  expect(new Set(messages.map((message) => getRaw({ type: "assistant", text: "", raw: message })?.session_id))).toEqual(
    new Set([session_id]),
  );
  expect(result.events[1]).toMatchObject({ executor_session_id: session_id, data: { permission_mode: "acceptEdits" } });
  expect(result.partials.map(({ text }) => text).join("")).toBe("I will write it.hello.txt is there.");
  const [first, second, rest] = result.usage;
  expect(first!.input_tokens).toBeGreaterThan(0);
  expect(second).toMatchObject({ cost_usd: null });
  expect(rest).toMatchObject({ input_tokens: 0, output_tokens: 0 });
  expect(rest!.cost_usd).toBeGreaterThan(0);
});

describe("sessions", () => {
  test("continue and fork from the record on another runner with another HOME, and a fork leaves the original unchanged", async () => {
    const { run, server } = await harness;
    const session_id = createSessionId();
    const first = await run("write it", { invocation: { session_id } });
    const original = Buffer.from(first.state!.bytes);
    const file = transcriptPath(first.directory, session_id);
    const storedBytes = readFileSync(file);

    const forkSession = createSessionId();
    const fork = await run("and in a branch?", {
      state: first.state,
      invocation: { mode: "fork", session_id: forkSession, forked_from: session_id },
    });
    expect(fork.outcome).toMatchObject({ status: "completed", text: "The same file." });
    expect(getConversationText(server.requests.at(-1)!)).toMatch(
      /write it[^]*hello\.txt is there\.[^]*and in a branch\?/,
    );
    expect(fork.events).toContainEqual(expect.objectContaining({ subtype: "init", executor_session_id: forkSession }));
    expect(Buffer.from(first.state!.bytes)).toEqual(original);
    expect(readFileSync(file)).toEqual(storedBytes);

    const second = await run("what was first?", { state: first.state, invocation: { mode: "resume", session_id } });
    expect(second.outcome).toMatchObject({ status: "completed", text: "A file." });
    expect(getConversationText(server.requests.at(-1)!)).toContain("hello.txt is there.");
    expect(getConversationText(server.requests.at(-1)!)).not.toContain("in a branch");
    // The SDK's totals cover the session, but each run counts only its own usage.
    const cost = (result: typeof first): number => result.usage.reduce((sum, { cost_usd }) => sum + (cost_usd ?? 0), 0);
    expect(cost(second)).toBeLessThan(cost(first));

    const third = await run("what was first?", {
      state: fork.state,
      invocation: { mode: "resume", session_id: forkSession },
    });
    expect(third.outcome).toMatchObject({ status: "completed" });
    expect(getConversationText(server.requests.at(-1)!)).toContain("and in a branch?");
  });

  test("fork at an earlier turn with only that turn, and refuse a turn that does not exist", async () => {
    const { run, server } = await harness;
    const session_id = createSessionId();
    const first = await run("what was first?", { invocation: { session_id } });
    const second = await run("write it", { state: first.state, invocation: { mode: "resume", session_id } });
    const fork = (fork_at_turn: number) =>
      run("and in a branch?", {
        state: second.state,
        invocation: { mode: "fork", session_id: createSessionId(), forked_from: session_id, fork_at_turn },
      });
    expect((await fork(1)).outcome).toMatchObject({ status: "completed", text: "The same file." });
    expect(getConversationText(server.requests.at(-1)!)).toMatch(/what was first\?[^]*A file\.[^]*and in a branch\?/);
    expect(getConversationText(server.requests.at(-1)!)).not.toContain("write it");
    const requestsBefore = server.requests.length;
    expect((await fork(3)).outcome).toMatchObject({
      status: "failed",
      reason: "refused",
      message: expect.stringContaining("it has 2 turns") as string,
    });
    expect(server.requests.length).toBe(requestsBefore);
  });

  test("fail as session_not_found if the record has no state or another executor wrote it", async () => {
    const { run, server } = await harness;
    const requestsBefore = server.requests.length;
    for (const state of [null, { format: "drover-loop-1", bytes: Buffer.from("{}") }])
      expect((await run("what was first?", { state, invocation: { mode: "resume" } })).outcome).toMatchObject({
        status: "failed",
        reason: "session_not_found",
        message: expect.stringContaining("Start a new run") as string,
      });
    expect(server.requests.length).toBe(requestsBefore);
  });

  test("continue where a lost run stopped, and inform the model", async () => {
    const { run, server } = await harness;
    const session_id = createSessionId();
    const first = await run("write it", { invocation: { session_id } });
    // The script has no rule for the text that the executor sends here.
    const continued = await run("write it", {
      state: first.state,
      invocation: { session_id, continues: true, attempt: 2 },
    });
    expect(continued.outcome).toMatchObject({ status: "failed", reason: "provider_invalid_response" });
    expect(getConversationText(server.requests.at(-1)!)).toMatch(
      /hello\.txt is there\.[^]*The run was interrupted and continues now/,
    );
  });
});

function transcriptPath(home: string, session_id: string): string {
  return join(home, ".claude", "projects", join(home, "work").replaceAll(/[^A-Za-z0-9]/g, "-"), `${session_id}.jsonl`);
}

describe("permission modes", () => {
  test.each([
    ["default", null, "denied"],
    ["acceptEdits", "hi", "done"],
    ["bypassPermissions", "hi", "done"],
    ["plan", null, "denied"],
  ] as const)("%s leaves %j in the requested file", async (mode, content, end) => {
    const result = await (await harness).run("write it", { agent: { permissions: { mode } } });
    expect(await result.read("hello.txt")).toBe(content);
    expect(result.outcome).toMatchObject(
      end === "done" ? { status: "completed" } : { status: "failed", reason: "permission_denied" },
    );
    expect(result.events).toContainEqual(
      expect.objectContaining({ subtype: "init", data: expect.objectContaining({ permission_mode: mode }) as object }),
    );
  });

  test.each([
    ["allow a tool in allowed_tools", { allowed_tools: ["Bash"] }, "", "completed"],
    ["deny a tool that the mode would ask about", {}, null, "failed"],
    ["deny a tool in denied_tools", { mode: "bypassPermissions", denied_tools: ["Bash"] }, null, "failed"],
  ] as const)("%s", async (_title, permissions, content, status) => {
    const result = await (
      await harness
    ).run("run a command", { agent: { permissions: { mode: "acceptEdits", ...permissions } as never } });
    expect(await result.read("ran")).toBe(content);
    expect(result.outcome).toMatchObject({ status, ...(status === "failed" ? { reason: "permission_denied" } : {}) });
  });

  test("refuse bypassPermissions as root without isolation before anything starts", async () => {
    const { run, server } = await harness;
    const requestsBefore = server.requests.length;
    const { outcome } = await run("write it", {
      agent: { permissions: { mode: "bypassPermissions" } },
      host: { isRoot: true, isolation: async () => "none" },
    });
    expect(outcome).toMatchObject({ status: "failed", reason: "refused" });
    expect(server.requests.length).toBe(requestsBefore);
  });
});

describe("failures", () => {
  test.each([
    ["refuse the key", "provider_auth", "bad key"],
    ["too much", "provider_rate_limit", "slow down"],
    ["break", "provider_network", "broken"],
  ])("maps the scripted error `%s` to %s", async (prompt, reason, message) => {
    const { outcome, events } = await (await harness).run(prompt);
    expect(outcome).toMatchObject({ status: "failed", reason, message: expect.stringContaining(message) as string });
    expect(events).toContainEqual(expect.objectContaining({ type: "system", subtype: "result" }));
    expect(listTypes(events)).toContain("error");
  });

  test("fails the run if a stream is cut off and Claude Code may not retry it", async () => {
    const { run, server } = await harness;
    const requestsBefore = server.requests.length;
    const retried = await run("cut it");
    expect(retried.outcome).toMatchObject({ status: "completed", text: "This text is cut in the middle of it." });
    expect(server.requests.length).toBe(requestsBefore + 2);
    const cut = await run("cut it", { env: { CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK: "1" } });
    expect(cut.outcome).toMatchObject({ status: "failed", reason: "provider_network" });
    expect(listTypes(cut.events)).toEqual(expect.arrayContaining(["error", "system:result"]));
  });

  test("say how to log in if there is no key or login", async () => {
    const { run, server } = await harness;
    const requestsBefore = server.requests.length;
    const { outcome, events } = await run("write it", { env: { ANTHROPIC_API_KEY: "" } });
    expect(outcome).toMatchObject({
      status: "failed",
      reason: "provider_auth",
      message: expect.stringMatching(/log ?in/i),
    });
    expect(listTypes(events)).toContain("error");
    expect(server.requests.length).toBe(requestsBefore);
  });

  test("say what to install if the package is missing", async () => {
    const { outcome, directory } = await (await harness).run("write it", { context: { runnerDirectory: "/tmp" } });
    expect(outcome).toMatchObject({
      status: "failed",
      reason: "dependency_missing",
      message: expect.stringContaining("npm install @anthropic-ai/claude-agent-sdk@0.3.325") as string,
    });
    expect(directory).toBeTruthy();
  });

  test.each([
    ["a provider", { agent: { provider: "anthropic" } }],
    ["an output schema", { agent: { output_schema: { type: "object" } } }],
    ["no prompt", { invocation: { prompt: " " } }],
  ])("%s is refused", async (_title, overrides) => {
    const { outcome } = await (await harness).run("write it", overrides);
    expect(outcome).toMatchObject({ status: "failed", reason: "refused" });
  });

  test.each([
    ["#!/bin/sh\necho 'no such option' >&2; exit 3\n", "exit_nonzero", "no such option"],
    ["#!/bin/sh\nkill -KILL $$\n", "signalled", "SIGKILL"],
    ["#!/bin/sh\nexit 0\n", "provider_invalid_response", "reported no result"],
    [null, "dependency_missing", "nowhere"],
  ])("a program that is not Claude Code (%j) fails as %s", async (program, reason, message) => {
    const directory = await mkdtemp(join(tmpdir(), "drover-sdk-bin-"));
    const bin = join(directory, program === null ? "nowhere" : "claude");
    if (program !== null) await writeFile(bin, program, { mode: 0o755 });
    const { outcome } = await (await harness).run("write it", { invocation: { executor_config: { bin } } });
    await rm(directory, { recursive: true });
    expect(outcome).toMatchObject({ status: "failed", reason, message: expect.stringContaining(message) as string });
  });
});

describe("stopping", () => {
  test.each(["hang", "wait for it"])("leaves no process and makes no further request (%s)", async (prompt) => {
    const { run, server } = await harness;
    const session_id = createSessionId();
    let requestsBefore = 0;
    const result = await run(prompt, {
      invocation: { session_id },
      agent: { permissions: { mode: "acceptEdits", allowed_tools: ["Bash"] } },
      async during({ abort, events }) {
        const before = server.requests.length;
        if (prompt === "hang") await expect.poll(() => server.requests.length).toBeGreaterThan(before);
        else await expect.poll(() => events.some(({ type }) => type === "tool_use")).toBe(true);
        requestsBefore = server.requests.length;
        abort("user");
      },
    });
    expect(result.outcome).toEqual({ status: "cancelled", by: "user" });
    expect(server.requests.length).toBe(requestsBefore);
  });

  test("fails at the time limit, and the session can continue", async () => {
    const { run, server } = await harness;
    const session_id = createSessionId();
    const result = await run("wait for it", {
      invocation: { session_id },
      agent: { permissions: { mode: "acceptEdits", allowed_tools: ["Bash"] } },
      async during({ abort, saved }) {
        await expect
          .poll(() => saved.state !== null && Buffer.from(saved.state.bytes).includes("touch begun"))
          .toBe(true);
        abort("timeout");
      },
    });
    expect(result.outcome).toMatchObject({ status: "failed", reason: "timeout" });
    const next = await run("what was first?", { state: result.state, invocation: { mode: "resume", session_id } });
    expect(next.outcome).toMatchObject({ status: "completed" });
    expect(getConversationText(server.requests.at(-1)!)).toContain("wait for it");
  });

  test("fails as max_turns after too many turns", async () => {
    const { outcome } = await (
      await harness
    ).run("never end", {
      agent: { max_turns: 2, permissions: { mode: "acceptEdits", allowed_tools: ["Bash"] } },
    });
    expect(outcome).toMatchObject({ status: "failed", reason: "max_turns" });
  });
});
