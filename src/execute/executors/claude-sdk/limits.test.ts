import { afterAll, expect, test } from "vitest";
import {
  getConversationText,
  createSessionId,
  openClaudeSdk,
  type SdkRun,
} from "../../../../test/fixtures/execute/claude-sdk.ts";
import type { Agent } from "../../../model/agent.ts";

const resetsAt = 4_000_000_000;
const usage = { input_tokens: 10_000, output_tokens: 100 };
let limited = true;

const harness = openClaudeSdk((request) => {
  const last = request.messages.findLast(({ role, text }) => role === "user" && text !== "")?.text ?? "";
  if (last.endsWith("be limited") && limited)
    return {
      error: {
        status: 429,
        type: "rate_limit_error",
        message: "limit",
        headers: {
          "anthropic-ratelimit-unified-status": "rejected",
          "anthropic-ratelimit-unified-reset": String(resetsAt),
          "anthropic-ratelimit-unified-representative-claim": "five_hour",
        },
      },
    };
  // Messages that are sent while the model works arrive between tool results.
  const shouldStop = request.messages.some(({ text }) => /continues now|stop now/.test(text));
  if (shouldStop || last.endsWith("be limited")) return { text: "I am done.", usage };
  return { tool: { name: "Bash", input: { command: "echo again" }, exact: true }, usage };
});
afterAll(async () => (await harness).close());

const permissions = { mode: "acceptEdits", allowed_tools: ["Bash"] } as const;

async function spend(budget: Agent["budget"], overrides: SdkRun = {}) {
  const { run, server } = await harness;
  const requestsBefore = server.requests.length;
  const result = await run("never end", {
    ...overrides,
    agent: { permissions: { ...permissions, allowed_tools: ["Bash"] }, budget, ...overrides.agent },
  });
  return { ...result, requests: server.requests.slice(requestsBefore) };
}

/** The cost of one answer of the scripted model, as the SDK calculates it. */
let turnUsd: Promise<number> | null = null;
const getTurnCost = (): Promise<number> =>
  (turnUsd ??= (async () => {
    const { usage: reportedUsage } = await (await harness).run("stop now");
    return reportedUsage.reduce((sum, { cost_usd }) => sum + (cost_usd ?? 0), 0);
  })());

test.each([
  ["turns", async () => ({ turns: 2 })],
  ["tokens", async () => ({ tokens: 20_000 })],
  ["cost", async () => ({ cost_usd: 1.5 * (await getTurnCost()) })],
])(
  "parks a run that has spent its %s before the next request, and gives it the full budget again when it continues",
  async (_kind, createBudget) => {
    const session_id = createSessionId();
    const budget = await createBudget();
    const parked = await spend(budget, { invocation: { session_id } });
    expect(parked.outcome).toMatchObject({
      status: "parked",
      why: "budget",
      message: expect.stringContaining("Resume the run") as string,
    });
    expect(parked.requests.length).toBe(2);
    const continued = await spend(budget, {
      state: parked.state,
      invocation: { session_id, continues: true, attempt: 2 },
    });
    expect(continued.outcome).toMatchObject({ status: "completed", text: "I am done." });
    expect(getConversationText(continued.requests[0]!)).toMatch(/never end[^]*continues now/);
  },
);

test("fails a run that has spent its budget if when_spent is fail, and parks one until tomorrow if the daily budget is spent", async () => {
  const failed = await spend({ turns: 1, when_spent: "fail" });
  expect(failed.outcome).toMatchObject({ status: "failed", reason: "budget_exceeded" });
  expect(failed.requests.length).toBe(1);
  const overDailyBudget = await spend(undefined, { context: { overBudget: AbortSignal.abort() } });
  expect(overDailyBudget.outcome).toMatchObject({
    status: "parked",
    why: "budget",
    until: expect.stringMatching(/T00:00:00\.000Z$/) as string,
  });
  expect(overDailyBudget.requests.length).toBe(1);
});

test("parks a run until the account's usage limit resets, and continues it in its session", async () => {
  const { run, server } = await harness;
  const session_id = createSessionId();
  // With a subscription, because an API key has no such limit.
  const env = { ANTHROPIC_API_KEY: "", CLAUDE_CODE_OAUTH_TOKEN: "sk-ant-oat01-scripted" };
  const until = new Date(resetsAt * 1000).toISOString();
  const parked = await run("be limited", { env, invocation: { session_id } });
  expect(parked.outcome).toMatchObject({ status: "parked", why: "usage_limit", until });
  const failed = await run("be limited", { env, agent: { on_usage_limit: "fail" } });
  expect(failed.outcome).toMatchObject({
    status: "failed",
    reason: "provider_rate_limit",
    message: expect.stringContaining(until) as string,
  });
  limited = false;
  const continued = await run("be limited", {
    env,
    state: parked.state,
    invocation: { session_id, continues: true, attempt: 2 },
  });
  expect(continued.outcome).toMatchObject({ status: "completed", text: "I am done." });
  expect(getConversationText(server.requests.at(-1)!)).toContain("be limited");
});

test("passes messages to a working model, in the same process if that still accepts them", async () => {
  const { run, server } = await harness;
  let sendMessage!: (text: string) => void;
  const message = new Promise<string>((resolve) => (sendMessage = resolve));
  const result = await run("never end", {
    agent: { permissions: { ...permissions, allowed_tools: ["Bash"] } },
    context: {
      input: {
        async *[Symbol.asyncIterator]() {
          yield { text: await message, seq: 5 };
        },
      },
    },
    async during({ events }) {
      await expect.poll(() => events.filter(({ type }) => type === "tool_result").length).toBeGreaterThan(0);
      sendMessage("stop now");
    },
  });
  expect(result.outcome).toMatchObject({ status: "completed", text: "I am done." });
  expect(JSON.stringify(server.requests.at(-1)!.messages)).toContain("stop now");
  expect(result.events.filter((event) => event.type === "system" && event.subtype === "init").length).toBe(1);
});

test("gives the next attempt the messages that a lost attempt received, each only once", async () => {
  const { run, server } = await harness;
  const session_id = createSessionId();
  const stop = { text: "stop now", seq: 5 };
  const agent = { permissions: { ...permissions, allowed_tools: ["Bash"] } };
  const first = await run("never end", {
    agent,
    invocation: { session_id },
    context: {
      input: (async function* () {
        yield stop;
      })(),
    },
  });
  expect(first.outcome).toMatchObject({ status: "completed" });
  const continued = await run("never end", {
    agent,
    state: first.state,
    invocation: { session_id, continues: true, attempt: 2, inputs: [stop, { text: "and now?", seq: 9 }] },
  });
  expect(continued.outcome).toMatchObject({ status: "completed" });
  const last = JSON.stringify(server.requests.at(-1)!.messages);
  expect(last.split("stop now")).toHaveLength(2);
  expect(last).toContain("and now?");
});
