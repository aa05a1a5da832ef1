import { readdirSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Turn } from "../../../../test/model-server/script.ts";
import { startModelServer } from "../../../../test/model-server/server.ts";
import type { Agent } from "../../../model/agent.ts";
import type { RunEvent } from "../../../model/event.ts";
import { call, results, run, types } from "../../../../test/fixtures/execute/model-run.ts";

describe("the outcome of a run", () => {
  const retryHeaders = { "retry-after-ms": "1" };
  const readMissingFile = { tool: call("file_read", { path: "missing" }) };
  interface Case {
    turns: readonly Turn[];
    /** Uses the address of a stopped server. */
    unreachable?: true;
    expectedOutcome: Record<string, unknown>;
    message?: RegExp;
    retries?: number;
    requests?: number;
    steps?: string[];
    agent?: Partial<Agent>;
  }
  const cases: Record<string, Case> = {
    "a refused authentication": {
      turns: [{ error: { status: 401, message: "invalid key" } }],
      expectedOutcome: { status: "failed", reason: "provider_auth" },
      message: /invalid key.*Check ANTHROPIC_API_KEY/,
      requests: 1,
    },
    "a 429 with a distant reset time, if on_usage_limit is fail": {
      turns: [{ error: { status: 429, message: "limit", headers: { "retry-after": "3600" } } }],
      agent: { on_usage_limit: "fail" },
      expectedOutcome: { status: "failed", reason: "provider_rate_limit" },
      message: /Try again in 3600 s/,
      requests: 1,
    },
    "a 429 with a distant reset time": {
      turns: [{ error: { status: 429, message: "limit", headers: { "retry-after": "3600" } } }],
      expectedOutcome: { status: "parked", why: "usage_limit", until: "2026-01-01T01:00:00.000Z" },
      requests: 1,
    },
    "a 429 on every try": {
      turns: [{ error: { status: 429, message: "busy", headers: retryHeaders } }],
      expectedOutcome: { status: "failed", reason: "provider_rate_limit" },
      message: /busy/,
      retries: 3,
      requests: 4,
    },
    "a 429 on the first two tries": {
      turns: [{ error: { status: 429, message: "busy", headers: retryHeaders }, times: 2 }, { text: "now it works" }],
      expectedOutcome: { status: "completed", text: "now it works" },
      retries: 2,
      requests: 3,
      steps: ["assistant"],
    },
    "a refused connection": {
      turns: [{ text: "never" }],
      unreachable: true,
      expectedOutcome: { status: "failed", reason: "provider_network" },
      message: /ECONNREFUSED.*Check the network and the base URL/,
      retries: 3,
      requests: 0,
    },
    "a web page in place of an answer": {
      turns: [{ web_page: true }],
      expectedOutcome: { status: "failed", reason: "provider_invalid_response" },
      message: /check the model's name and the base URL/,
      retries: 3,
      requests: 4,
    },
    "a malformed chunk in the answer": {
      turns: [{ text: "an answer with a hole", stream_fault: "malformed" }],
      expectedOutcome: { status: "failed", reason: "provider_invalid_response" },
      retries: 3,
      requests: 4,
    },
    "a connection that breaks in the middle of the first answer": {
      turns: [{ text: "an answer that breaks off", cut_after_bytes: 200, times: 1 }, { text: "the whole answer" }],
      expectedOutcome: { status: "completed", text: "the whole answer" },
      retries: 1,
      requests: 2,
      steps: ["assistant"],
    },
    "an error in the middle of the first answer": {
      turns: [{ text: "an answer that fails", stream_fault: "error", times: 1 }, { text: "the whole answer" }],
      expectedOutcome: { status: "completed", text: "the whole answer" },
      retries: 1,
      requests: 2,
      steps: ["assistant"],
    },
    "a first answer that ends early": {
      turns: [{ text: "an answer without an end", stream_fault: "ends_early", times: 1 }, { text: "the whole answer" }],
      expectedOutcome: { status: "completed", text: "the whole answer" },
      retries: 1,
      requests: 2,
      steps: ["assistant"],
    },
    "an answer that reached the output token limit": {
      turns: [{ text: "only the beginning", token_limit: true }],
      expectedOutcome: { status: "failed", reason: "provider_invalid_response", text: "only the beginning" },
      message: /cut off at the model's output token limit/,
      requests: 1,
      steps: ["assistant"],
    },
    "a call whose input is cut off": {
      turns: [{ tool: { ...readMissingFile.tool, cut_input: 5 } }, { text: "I noticed." }],
      expectedOutcome: { status: "completed", text: "I noticed." },
      requests: 2,
      steps: ["tool_use", "tool_result", "assistant"],
    },
    "a request that the service refuses": {
      turns: [{ error: { status: 400, message: "no such model" } }],
      expectedOutcome: { status: "failed", reason: "provider_invalid_response" },
      message: /no such model/,
      retries: 3,
    },
    "three identical calls with the same result": {
      turns: [readMissingFile],
      expectedOutcome: { status: "failed", reason: "loop" },
      message: /file.read 3 times with the same input and the same result/,
      requests: 3,
      steps: ["tool_use", "tool_result", "tool_use", "tool_result", "tool_use", "tool_result"],
    },
    "two calls that the model makes three times each": {
      turns: [{ tools: [readMissingFile.tool, call("file_list", {})] }],
      expectedOutcome: { status: "failed", reason: "loop" },
      requests: 3,
    },
  };
  it.each(Object.entries(cases))(
    "is as expected after %s",
    async (_title, { turns, expectedOutcome, message = /^/, ...expected }) => {
      const stoppedServer = await startModelServer([]);
      await stoppedServer.stop();
      const overrides = expected.unreachable ? { executor_config: { base_url: stoppedServer.url } } : {};
      const { outcome, events, requests } = await run(turns, expected.agent ?? {}, overrides);
      expect(outcome).toMatchObject(expectedOutcome);
      if (outcome.status === "failed") expect(outcome.message).toMatch(message);
      const retries = events.filter((event) => event.type === "system" && event.subtype === "provider_retry");
      expect(retries).toHaveLength(expected.retries ?? 0);
      if (expected.requests !== undefined) expect(requests).toHaveLength(expected.requests);
      expect(types(events).filter((type) => type !== "system")).toEqual(expected.steps ?? expect.anything());
    },
  );

  it("passes a tool's exception to the model as a result", async () => {
    const { outcome, events } = await run(
      [{ tool: call("command_run", { command: "true" }) }, { text: "I saw it fail." }],
      { permissions: { mode: "bypassPermissions" } },
      {},
      { start: () => Promise.reject(new Error("no process table")) },
    );
    expect(outcome).toMatchObject({ status: "completed", text: "I saw it fail." });
    expect(results(events)).toMatchObject([
      { is_error: true, output: { error: { code: "failed", message: expect.stringContaining("no process table") } } },
    ]);
  });

  it("stops in the middle of an answer when cancelled, without another request", async () => {
    const controller = new AbortController();
    const { outcome, events, requests } = await run(
      () => ({ text: "a long answer in many pieces", slow_ms_per_chunk: 50 }),
      {},
      {},
      { signal: controller.signal, partial: () => controller.abort("user") },
    );
    expect(outcome).toEqual({ status: "cancelled", by: "user" });
    expect(requests).toHaveLength(1);
    expect(types(events)).toEqual(["system"]);
  });

  it("stops between two tools when cancelled, without running the second", async () => {
    const controller = new AbortController();
    const events: RunEvent[] = [];
    const { outcome, requests, work } = await run(
      [
        { tools: [call("file_write", { path: "a", content: "" }), call("file_write", { path: "b", content: "" })] },
        { text: "never" },
      ],
      {},
      {},
      {
        signal: controller.signal,
        async emit(event) {
          events.push(event);
          if (event.type === "tool_result") controller.abort("user");
        },
      },
    );
    expect(outcome).toEqual({ status: "cancelled", by: "user" });
    expect(readdirSync(work)).toEqual(["a"]);
    expect(types(events)).toEqual(["system", "tool_use", "tool_use", "tool_result"]);
    expect(requests).toHaveLength(1);
  });

  it("fails after max_turns turns", async () => {
    let turns = 0;
    const next = (): Turn => ({ tool: call("file_list", { pattern: `*.${turns++}` }) });
    const { outcome, requests } = await run(next, { max_turns: 4 });
    expect(outcome).toMatchObject({ status: "failed", reason: "max_turns" });
    expect(requests).toHaveLength(4);
  });

  const expensiveTurn = { tool: call("file_list", {}), usage: { input_tokens: 100, output_tokens: 9 } };
  const withPrice = { executor_config: { price: { input: 1000, output: 0 } } };

  it.each([
    [{ cost_usd: 0.05 }, /spent 0.1 USD since its budget was granted. Its budget is 0.05 USD/],
    [{ tokens: 109 }, /used 109 tokens. Its budget is 109/],
    [{ turns: 1 }, /used 1 turns. Its budget is 1/],
  ])("parks when its budget %j is spent, or fails with when_spent: fail", async (budget, message) => {
    const parked = await run([expensiveTurn, { text: "never" }], { budget }, withPrice);
    expect(parked.outcome).toMatchObject({ status: "parked", why: "budget", message: expect.stringMatching(message) });
    expect(parked.requests).toHaveLength(1);
    const failed = await run(
      [expensiveTurn, { text: "never" }],
      { budget: { ...budget, when_spent: "fail" } },
      withPrice,
    );
    expect(failed.outcome).toMatchObject({
      status: "failed",
      reason: "budget_exceeded",
      message: expect.stringMatching(message),
    });
    expect(failed.requests).toHaveLength(1);
  });

  it("parks before the next request when the agent's daily budget is spent", async () => {
    const spent = new AbortController();
    const { outcome, requests } = await run(
      [expensiveTurn, { text: "never" }],
      {},
      {},
      { overBudget: spent.signal, usage: () => spent.abort() },
    );
    expect(outcome).toMatchObject({ status: "parked", why: "budget", until: "2026-01-02T00:00:00.000Z" });
    expect(requests).toHaveLength(1);
  });

  it("refuses a budget in USD if the price of the model is unknown", async () => {
    const { outcome, requests } = await run([expensiveTurn, { text: "never" }], { budget: { cost_usd: 0.05 } });
    expect(outcome).toMatchObject({
      status: "failed",
      reason: "refused",
      message: expect.stringMatching(/Set `price` in the profile's config/),
    });
    expect(requests).toHaveLength(1);
  });
});
