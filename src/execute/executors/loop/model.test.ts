import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { describeContract } from "../../../../test/contract/contract.ts";
import { executorContract } from "../../../../test/contract/executor.ts";
import { invocationOf } from "../../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../../test/fixtures/execute/open-context.ts";
import type { Script, Turn } from "../../../../test/model-server/script.ts";
import { type ModelServer, startModelServer } from "../../../../test/model-server/server.ts";
import type { Agent } from "../../../model/agent.ts";
import type { RunEvent } from "../../../model/event.ts";
import type { Invocation, RunContext } from "../../../model/executor.ts";
import { createModelExecutor } from "./model.ts";

const closing: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

let ids = 0;
const newId = (): string => `conversation-${++ids}`;

const executor = createModelExecutor({
  env: { ANTHROPIC_API_KEY: "key" },
  newId,
  version: "0",
  checkInput: async (_schema, value) =>
    typeof (value as { command?: unknown }).command === "number" ? [{ path: "command", message: "not a string" }] : [],
  now: () => new Date("2026-01-01T00:00:00Z"),
  pause: async () => undefined,
});

function invocation(server: ModelServer, agent: Partial<Agent> = {}, more: Partial<Invocation> = {}): Invocation {
  return invocationOf(
    "r1",
    { type: "autonomous", provider: "anthropic", model: "m", ...agent },
    { prompt: "do it", executor_config: { base_url: server.url }, ...more },
  );
}

async function run(
  script: readonly Turn[] | Extract<Script, (...asked: never) => unknown>,
  agent: Partial<Agent> = {},
  more: Partial<Invocation> = {},
  context: Partial<RunContext> = {},
) {
  const server = await startModelServer(typeof script === "function" ? script : [{ when: /^/, turns: script }]);
  const opened = await openContext(context);
  closing.push(server.stop, opened.close);
  const config = { base_url: server.url, ...more.executor_config };
  const asked = invocation(server, agent, { ...more, executor_config: config });
  const outcome = await executor.run(asked, opened.context);
  expect(await opened.alive()).toBe(0);
  return { outcome, events: opened.events, work: join(opened.folder, "work"), requests: server.requests };
}

const call = (name: string, input: Record<string, unknown>) => ({ name, input, exact: true as const });
const types = (events: readonly RunEvent[]) => events.map(({ type }) => type).filter((type) => type !== "progress");
const results = (events: readonly RunEvent[]) =>
  events.flatMap((event) => (event.type === "tool_result" ? [event] : []));

describeContract("the executor model", executorContract, async () => {
  const server = await startModelServer((asked) => {
    const said = asked.messages.some(({ role }) => role === "assistant");
    if (asked.messages.some(({ text }) => text.includes("fail"))) return { error: { status: 401, message: "no" } };
    if (asked.messages.some(({ text }) => text.includes("endless")) && !said)
      return { tool: call("command_run", { command: "sleep 1000" }) };
    if (asked.messages.some(({ text }) => text.includes("stubborn")) && !said)
      return { tool: call("command_run", { command: "trap '' TERM; while :; do sleep 1; done" }) };
    if (asked.messages.some(({ text }) => text.includes("hearing")))
      return { text: `heard ${asked.messages.at(-1)?.text}` };
    if (asked.messages.some(({ text }) => text.includes("asking")) && !said)
      return { tool: call("command_run", { command: "echo did-$((40 + 1))" }) };
    if (asked.messages.some(({ text }) => text.includes("leaving")) && !said)
      return { tool: call("command_run", { command: "sleep 1000 >/dev/null 2>&1 & echo left" }) };
    return { text: "done" };
  });
  closing.push(server.stop);
  const permissions = { mode: "bypassPermissions" as const };
  return {
    executor,
    succeeding: invocation(server, { permissions }),
    failing: invocation(server, { permissions }, { prompt: "fail" }),
    endless: invocation(server, { permissions }, { prompt: "endless" }),
    stubborn: invocation(server, { permissions }, { prompt: "stubborn" }),
    leaving: invocation(server, { permissions }, { prompt: "leaving" }),
    hearing: invocation(server, {}, { prompt: "hearing" }),
    asking: { invocation: invocation(server, {}, { prompt: "asking" }), edited: { command: "echo did-$((40 + 2))" } },
    async open() {
      const opened = await openContext();
      closing.push(opened.close);
      return opened;
    },
  };
});

it("writes, reads twice at once and answers, with each step an event", async () => {
  const { outcome, events, work } = await run([
    { text: "I write.", tool: call("file_write", { path: "a/b.txt", content: "hello" }) },
    { tools: [call("file_read", { path: "a/b.txt" }), call("file_read", { path: "missing" })] },
    { text: "It says hello." },
  ]);
  expect(outcome).toMatchObject({ status: "completed", text: "It says hello." });
  expect(readFileSync(join(work, "a/b.txt"), "utf8")).toBe("hello");
  expect(types(events).filter((type) => type !== "usage")).toEqual([
    "system",
    "assistant",
    "tool_use",
    "tool_result",
    "tool_use",
    "tool_use",
    "tool_result",
    "tool_result",
    "assistant",
  ]);
  expect(
    results(events)
      .map(({ is_error }) => is_error)
      .sort(),
  ).toEqual([false, false, true]);
});

it("runs a command on the record and tells the model how it ended", async () => {
  const { events, requests } = await run(
    [{ tool: call("command_run", { command: "echo out; echo err >&2; exit 3" }) }, { text: "I saw it." }],
    { permissions: { mode: "bypassPermissions" } },
  );
  expect(results(events)[0]).toMatchObject({ output: { ok: true, exit_code: 3, stdout: "out\n", stderr: "err\n" } });
  expect(requests.at(-1)?.messages.at(-1)?.tool_results[0]).toContain('"exit_code":3');
});

describe("permission modes decide by the effect of a tool", () => {
  const everything: Turn[] = [
    { tool: call("file_write", { path: "a", content: "x" }) },
    { tool: call("command_run", { command: "touch b" }) },
    { tool: call("file_list", {}) },
    { text: "done" },
  ];
  it.each([
    ["plan", ["unknown_tool", "unknown_tool", null], []],
    ["default", ["permission_denied", "permission_denied", null], []],
    ["acceptEdits", [null, "permission_denied", null], ["a"]],
    ["bypassPermissions", [null, null, null], ["a", "b"]],
  ] as const)("%s", async (mode, faults, left) => {
    const { events, requests } = await run(everything, { permissions: { mode } });
    const codes = results(events).map(({ output }) => (output as { error?: { code: string } }).error?.code ?? null);
    expect(codes).toEqual(faults);
    const listed = results(events).at(-1)?.output as { entries: { path: string }[] };
    expect(listed.entries.map(({ path }) => path)).toEqual(left);
    const offered = JSON.stringify(requests[0]?.body["tools"]);
    expect(offered.includes("file_write")).toBe(mode !== "plan");
  });

  it("allowed_tools pre-approves, denied_tools removes", async () => {
    const permissions = { mode: "default" as const, allowed_tools: ["file.*"], denied_tools: ["file_list"] };
    const { events } = await run(everything, { permissions });
    const codes = results(events).map(({ output }) => (output as { error?: { code: string } }).error?.code ?? null);
    expect(codes).toEqual([null, "permission_denied", "unknown_tool"]);
  });

  it("mcp__SERVER stands for all its tools, and a pattern that matches no tool is a warning", async () => {
    const server = join(import.meta.dirname, "../../../../test/fixtures/mcp/server.mjs");
    const both = { tools: [call("mcp__notes__change", { word: "b" }), call("mcp__other__look", { word: "c" })] };
    const notes = { command: process.execPath, args: [server] };
    const { events } = await run([both, { text: "done" }], {
      mcp_servers: { notes, other: notes },
      permissions: {
        mode: "default",
        allowed_tools: ["mcp__notes", "mcp__typo__*", "file.*"],
        denied_tools: ["mcp__other", "Web*"],
      },
    });
    const codes = results(events).map(({ output }) => (output as { error?: { code: string } }).error?.code ?? null);
    expect(codes).toEqual([null, "unknown_tool"]);
    const warned = events.filter((event) => event.type === "system" && event.subtype === "unmatched_permission");
    expect(warned).toMatchObject([{ data: { pattern: "mcp__typo__*" } }, { data: { pattern: "Web*" } }]);
  });
});

describe("how a run ends", () => {
  const again = { "retry-after-ms": "1" };
  const missing = { tool: call("file_read", { path: "missing" }) };
  interface Case {
    turns: readonly Turn[];
    /** At the address of a server that has ended. */
    unreachable?: true;
    ends: Record<string, unknown>;
    message?: RegExp;
    retries?: number;
    requests?: number;
    steps?: string[];
    agent?: Partial<Agent>;
  }
  const cases: Record<string, Case> = {
    "authentication refused": {
      turns: [{ error: { status: 401, message: "invalid key" } }],
      ends: { status: "failed", reason: "provider_auth" },
      message: /invalid key.*Check ANTHROPIC_API_KEY/,
      requests: 1,
    },
    "429 with a reset that is far away": {
      turns: [{ error: { status: 429, message: "limit", headers: { "retry-after": "3600" } } }],
      agent: { on_usage_limit: "fail" },
      ends: { status: "failed", reason: "provider_rate_limit" },
      message: /Try again in 3600 s/,
      requests: 1,
    },
    "429 with a reset that is far away, by parking": {
      turns: [{ error: { status: 429, message: "limit", headers: { "retry-after": "3600" } } }],
      ends: { status: "parked", why: "usage_limit", until: "2026-01-01T01:00:00.000Z" },
      requests: 1,
    },
    "429 again and again": {
      turns: [{ error: { status: 429, message: "busy", headers: again } }],
      ends: { status: "failed", reason: "provider_rate_limit" },
      message: /busy/,
      retries: 3,
      requests: 4,
    },
    "429 that passes": {
      turns: [{ error: { status: 429, message: "busy", headers: again }, times: 2 }, { text: "now it works" }],
      ends: { status: "completed", text: "now it works" },
      retries: 2,
      requests: 3,
      steps: ["assistant"],
    },
    "a refused connection": {
      turns: [{ text: "never" }],
      unreachable: true,
      ends: { status: "failed", reason: "provider_network" },
      message: /ECONNREFUSED.*Check the network and the base URL/,
      retries: 3,
      requests: 0,
    },
    "a web page in place of an answer": {
      turns: [{ web_page: true }],
      ends: { status: "failed", reason: "provider_invalid_response" },
      message: /check the model's name and the base URL/,
      retries: 3,
      requests: 4,
    },
    "a malformed chunk in the answer": {
      turns: [{ text: "an answer with a hole", stream_fault: "malformed" }],
      ends: { status: "failed", reason: "provider_invalid_response" },
      retries: 3,
      requests: 4,
    },
    "a request the service refuses": {
      turns: [{ error: { status: 400, message: "no such model" } }],
      ends: { status: "failed", reason: "provider_invalid_response" },
      message: /no such model/,
      retries: 3,
    },
    "a model that repeats itself": {
      turns: [missing],
      ends: { status: "failed", reason: "loop" },
      message: /file.read 3 times with the same input and the same result/,
      requests: 3,
      steps: ["tool_use", "tool_result", "tool_use", "tool_result", "tool_use", "tool_result"],
    },
    "a model that repeats two calls by turns": {
      turns: [{ tools: [missing.tool, call("file_list", {})] }],
      ends: { status: "failed", reason: "loop" },
      requests: 3,
    },
  };
  it.each(Object.entries(cases))("%s", async (_title, { turns, ends, message = /^/, ...seen }) => {
    const ended = await startModelServer([]);
    await ended.stop();
    const more = seen.unreachable ? { executor_config: { base_url: ended.url } } : {};
    const { outcome, events, requests } = await run(turns, seen.agent ?? {}, more);
    expect(outcome).toMatchObject(ends);
    if (outcome.status === "failed") expect(outcome.message).toMatch(message);
    const retries = events.filter((event) => event.type === "system" && event.subtype === "provider_retry");
    expect(retries).toHaveLength(seen.retries ?? 0);
    if (seen.requests !== undefined) expect(requests).toHaveLength(seen.requests);
    expect(types(events).filter((type) => type !== "system")).toEqual(seen.steps ?? expect.anything());
  });

  it("a tool that throws is a result the model can act on", async () => {
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

  it("cancelled in the middle of an answer, without another request", async () => {
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

  it("cancelled between two tools, without running the second", async () => {
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

  it("after max_turns turns", async () => {
    let turns = 0;
    const next = (): Turn => ({ tool: call("file_list", { pattern: `*.${turns++}` }) });
    const { outcome, requests } = await run(next, { max_turns: 4 });
    expect(outcome).toMatchObject({ status: "failed", reason: "max_turns" });
    expect(requests).toHaveLength(4);
  });

  const spending = { tool: call("file_list", {}), usage: { input_tokens: 100, output_tokens: 9 } };
  const priced = { executor_config: { price: { input: 1000, output: 0 } } };

  it.each([
    [{ cost_usd: 0.05 }, /spent 0.1 USD of its budget of 0.05 USD/],
    [{ tokens: 109 }, /spent 109 tokens of its budget of 109/],
    [{ turns: 1 }, /spent 1 turns of its budget of 1/],
  ])("when its budget %j is spent: parked, or failed where its agent wants that", async (budget, message) => {
    const parked = await run([spending, { text: "never" }], { budget }, priced);
    expect(parked.outcome).toMatchObject({ status: "parked", why: "budget", message: expect.stringMatching(message) });
    expect(parked.requests).toHaveLength(1);
    const failed = await run([spending, { text: "never" }], { budget: { ...budget, when_spent: "fail" } }, priced);
    expect(failed.outcome).toMatchObject({
      status: "failed",
      reason: "budget_exceeded",
      message: expect.stringMatching(message),
    });
    expect(failed.requests).toHaveLength(1);
  });

  it("parks before it asks the model again when its agent's day is spent", async () => {
    const spent = new AbortController();
    const { outcome, requests } = await run(
      [spending, { text: "never" }],
      {},
      {},
      { overBudget: spent.signal, usage: () => spent.abort() },
    );
    expect(outcome).toMatchObject({ status: "parked", why: "budget", until: "2026-01-02T00:00:00.000Z" });
    expect(requests).toHaveLength(1);
  });

  it("when it cannot keep a budget in USD, as nobody knows the price of the model", async () => {
    const { outcome, requests } = await run([spending, { text: "never" }], { budget: { cost_usd: 0.05 } });
    expect(outcome).toMatchObject({
      status: "failed",
      reason: "refused",
      message: expect.stringMatching(/Set `price` in the profile's config/),
    });
    expect(requests).toHaveLength(1);
  });
});

it("answers calls that cannot be carried out, so that the model can correct them", async () => {
  const cut = { ...call("file_write", { path: "a.txt", content: "hello" }), cut_input: 12 };
  const { outcome, events, work } = await run([
    { tools: [call("file_raed", { path: "a" }), call("file_read", {}), cut] },
    { text: "I see." },
  ]);
  expect(outcome).toMatchObject({ status: "completed", text: "I see." });
  expect(results(events).map(({ output }) => (output as { error?: unknown }).error)).toEqual([
    { code: "unknown_tool", message: expect.stringContaining("There is no tool file_raed. Did you mean file.read?") },
    { code: "invalid_input", message: expect.stringContaining("input.path") },
    { code: "invalid_input", message: expect.stringContaining("not valid JSON") },
  ]);
  expect(readdirSync(work)).toEqual([]);
});

it("goes on where a call gave the same result before and something new in between", async () => {
  const list = { tool: call("file_list", {}) };
  const write = (content: string) => ({ tool: call("file_write", { path: "a", content }) });
  const turns = [write("1"), list, write("12"), list, write("123"), list, { text: "done" }];
  expect((await run(turns)).outcome).toMatchObject({ status: "completed" });
});

describe("a conversation that outgrows the model's window", () => {
  const isSummary = (asked: { tools: readonly unknown[] }): boolean => asked.tools.length === 0;
  const compactions = (events: readonly RunEvent[]) =>
    events.flatMap((event) => (event.type === "system" && event.subtype === "compacted" ? [event.data] : []));
  const writes = { tool: call("file_write", { path: "a.txt", content: "hello" }) };
  const reads = { tool: call("file_read", { path: "a.txt" }) };

  it.each([
    ["window_almost_full", { input_tokens: 9000, output_tokens: 10 }, 0],
    ["too_long", { input_tokens: 10, output_tokens: 10 }, 1],
  ] as const)("is summarized (%s), with calls and results kept together", async (why, usage, refusals) => {
    let refused = 0;
    const { outcome, events, requests } = await run(
      (asked) => {
        if (isSummary(asked)) return { text: "a.txt was written.", usage };
        const steps = asked.messages.flatMap(({ tool_results }) => tool_results).length;
        if (asked.messages.some(({ text }) => text.includes("a.txt was written."))) return { text: "It says hello." };
        if (steps === 0) return writes;
        if (steps === 1) return { ...reads, usage };
        refused += 1;
        return { error: { status: 400, type: "invalid_request_error", message: "prompt is too long: 9 > 8" } };
      },
      {},
      { executor_config: { context_window: 10_000 } },
    );
    expect(outcome).toMatchObject({ status: "completed", text: "It says hello." });
    expect(refused).toBe(refusals);
    expect(compactions(events)).toEqual([{ why, summarized: 3, kept: 1, summary: "a.txt was written." }]);
    const summarized = requests.find(({ messages }) => messages.at(-1)?.text.startsWith("<conversation>"));
    expect(summarized?.messages.at(-1)?.text).toMatch(/do it[^]*file.write[^]*hello/);
    const own = requests.at(-1)!.messages.filter(({ role }) => role !== "system");
    expect(own[0]?.text).toMatch(/^do it\n\n<summary>[^]*a.txt was written/);
    expect(own.flatMap(({ tool_calls }) => tool_calls.map(({ name }) => name))).toEqual(["file_read"]);
    expect(own.flatMap(({ tool_results }) => tool_results)).toEqual([expect.stringContaining("hello")]);
  });

  it("gets a result cut that does not fit even then, and asks for less", async () => {
    const tooLong = { status: 400, type: "invalid_request_error", message: "prompt is too long" };
    const { outcome, events, requests } = await run(
      (asked) => {
        if (isSummary(asked)) return { text: "nothing yet" };
        const returned = asked.messages.flatMap(({ tool_results }) => tool_results);
        if (returned.length === 0)
          return { tool: call("command_run", { command: "head -c 20000 /dev/zero | tr '\\0' x" }) };
        return returned.some((text) => text.length > 10_000) ? { error: tooLong } : { text: "seen" };
      },
      { permissions: { mode: "bypassPermissions" } },
    );
    expect(outcome).toMatchObject({ status: "completed", text: "seen" });
    expect(compactions(events)).toEqual([]);
    expect(requests.at(-1)?.messages.at(-1)?.tool_results[0]).toMatch(/characters left out.*Ask for less/);
  });

  it("ends as provider_invalid_response where nothing can be left out", async () => {
    const error = { status: 400, type: "invalid_request_error", message: "prompt is too long" };
    const { outcome, requests } = await run([{ error }]);
    expect(outcome).toMatchObject({
      status: "failed",
      reason: "provider_invalid_response",
      message: expect.stringContaining("larger window"),
    });
    expect(requests).toHaveLength(1);
  });

  it("is not summarized once the run is cancelled", async () => {
    const controller = new AbortController();
    const { outcome, requests } = await run(
      (asked) => (isSummary(asked) ? { hang: true } : { ...reads, usage: { input_tokens: 9999, output_tokens: 1 } }),
      {},
      { executor_config: { context_window: 1000 } },
      {
        signal: controller.signal,
        emit: async ({ type }) => void (type === "tool_result" && controller.abort("user")),
      },
    );
    expect(outcome).toEqual({ status: "cancelled", by: "user" });
    expect(requests).toHaveLength(1);
  });
});

it("says the agent's first message when it resumes a session whose first request failed", async () => {
  let state: Awaited<ReturnType<typeof openContext>>["saved"]["state"] = null;
  let refused = true;
  const server = await startModelServer(() =>
    refused ? { error: { status: 401, message: "no" } } : { text: "hello" },
  );
  closing.push(server.stop);
  const once = async (more: Partial<Invocation>) => {
    const opened = await openContext();
    closing.push(opened.close);
    opened.saved.state = state;
    const outcome = await executor.run(invocation(server, { first_message: "Be brief." }, more), opened.context);
    state = opened.saved.state;
    const init = opened.events.find((event) => event.type === "system" && event.subtype === "init");
    return { outcome, executor_session_id: (init as { executor_session_id: string }).executor_session_id };
  };
  const { outcome, executor_session_id } = await once({ prompt: "one" });
  expect(outcome).toMatchObject({ reason: "provider_auth" });
  refused = false;
  const resumed = await once({ prompt: "two", mode: "resume", executor_session_id });
  expect(resumed.outcome).toMatchObject({ status: "completed" });
  await once({ prompt: "three", mode: "resume", executor_session_id });
  expect(
    server.requests
      .at(-1)
      ?.messages.slice(1)
      .map(({ text }) => text),
  ).toEqual(["Be brief.\n\ntwo", "hello", "three"]);
});

it("resumes with the whole history, and forks without touching the original", async () => {
  const states = new Map<string | null, Awaited<ReturnType<typeof openContext>>["saved"]["state"]>();
  const server = await startModelServer(({ messages }) => ({ text: `answer to ${messages.at(-1)?.text}` }));
  closing.push(server.stop);
  const once = async (more: Partial<Invocation>) => {
    const opened = await openContext();
    closing.push(opened.close);
    opened.saved.state = states.get(more.executor_session_id ?? null) ?? null;
    const outcome = await executor.run(invocation(server, {}, more), opened.context);
    const init = opened.events.find((event) => event.type === "system" && event.subtype === "init");
    const id = (init as { executor_session_id?: string } | undefined)?.executor_session_id ?? null;
    states.set(id, opened.saved.state);
    return { outcome, id };
  };
  const asked = () => server.requests.at(-1)?.messages.flatMap(({ role, text }) => (role === "user" ? [text] : []));

  const { id } = await once({ prompt: "one" });
  expect((await once({ prompt: "two", mode: "resume", executor_session_id: id })).id).toBe(id);
  expect(asked()).toEqual(["one", "two"]);
  const fork = await once({ prompt: "other", mode: "fork", executor_session_id: id });
  expect(fork.id).not.toBe(id);
  expect(asked()).toEqual(["one", "two", "other"]);
  await once({ prompt: "three", mode: "resume", executor_session_id: id });
  expect(asked()).toEqual(["one", "two", "three"]);
  expect((await once({ mode: "resume", executor_session_id: "unknown" })).outcome).toMatchObject({
    status: "failed",
    reason: "session_not_found",
  });
});

it.each([
  [{ provider: "antropic" }, /Did you mean anthropic/],
  [{ provider: "openai" }, /OPENAI_API_KEY/],
  [{ provider: "ollma" }, /Did you mean ollama/],
])("refuses %j before anything is asked", async (agent, message) => {
  const { outcome, requests } = await run([{ text: "never" }], agent);
  expect(outcome).toMatchObject({ status: "failed", message: expect.stringMatching(message) });
  expect(requests).toEqual([]);
});

it("takes the provider of drover.yaml where neither the agent nor the profile names one", async () => {
  const opened = await openContext();
  closing.push(opened.close);
  const named = createModelExecutor({
    env: {},
    named: { config: "scripted" },
    newId,
    version: "0",
    checkInput: async () => [],
  });
  const outcome = await named.run(invocationOf("r1", { type: "autonomous" }, { prompt: "do it" }), opened.context);
  expect(outcome).toMatchObject({ status: "completed", text: expect.stringContaining("built-in script") });
});

it("uses an agent's MCP servers, ends them with the run, and says which cannot be used", async () => {
  const server = join(import.meta.dirname, "../../../../test/fixtures/mcp/server.mjs");
  const mcp_servers = {
    notes: { command: process.execPath, args: [server] },
    broken: { command: process.execPath, args: ["-e", "process.exit(3)"] },
    missing: { command: "/nowhere/at-all" },
    garbled: {
      command: process.execPath,
      args: ["-e", "console.log('not JSON'); setTimeout(() => process.exit(), 100)"],
    },
    wrong: { urll: "http://127.0.0.1" },
  };
  const { outcome, events } = await run(
    [
      { tools: [call("mcp__notes__look", { word: "a" }), call("mcp__notes__change", { word: "b" })] },
      { text: "I used them." },
    ],
    { mcp_servers, permissions: { mode: "acceptEdits" } },
  );
  expect(outcome).toMatchObject({ status: "completed", text: "I used them." });
  expect(results(events).map(({ output }) => output)).toEqual([
    { ok: true, text: "looked at a" },
    { ok: false, error: { code: "permission_denied", message: expect.any(String) } },
  ]);
  const faults = events.flatMap((event) => (event.type === "error" ? [event.message] : []));
  for (const name of ["broken", "missing", "garbled", "wrong"])
    expect(faults).toContainEqual(expect.stringContaining(`The MCP server ${name} cannot be used`));
  expect(faults).toHaveLength(4);
});
