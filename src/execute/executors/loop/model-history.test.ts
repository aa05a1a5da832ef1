import { describe, expect, it } from "vitest";
import { openContext } from "../../../../test/fixtures/execute/open-context.ts";
import { startModelServer } from "../../../../test/model-server/server.ts";
import type { RunEvent } from "../../../model/event.ts";
import type { Invocation } from "../../../model/executor.ts";
import { call, cleanups, executor, invocation, run } from "../../../../test/fixtures/execute/model-run.ts";

describe("a conversation that outgrows the model's context window", () => {
  const isSummary = (request: { tools: readonly unknown[] }): boolean => request.tools.length === 0;
  const listCompactions = (events: readonly RunEvent[]) =>
    events.flatMap((event) => (event.type === "system" && event.subtype === "compacted" ? [event.data] : []));
  const writeTurn = { tool: call("file_write", { path: "a.txt", content: "hello" }) };
  const readTurn = { tool: call("file_read", { path: "a.txt" }) };

  it.each([
    ["window_almost_full", { input_tokens: 9000, output_tokens: 10 }, 0],
    ["too_long", { input_tokens: 10, output_tokens: 10 }, 1],
  ] as const)("is summarized (%s), with calls and results kept together", async (why, usage, refusals) => {
    let isRefused = 0;
    const { outcome, events, requests } = await run(
      (request) => {
        if (isSummary(request)) return { text: "a.txt was written.", usage };
        const steps = request.messages.flatMap(({ tool_results }) => tool_results).length;
        if (request.messages.some(({ text }) => text.includes("a.txt was written."))) return { text: "It says hello." };
        if (steps === 0) return writeTurn;
        if (steps === 1) return { ...readTurn, usage };
        isRefused += 1;
        return { error: { status: 400, type: "invalid_request_error", message: "prompt is too long: 9 > 8" } };
      },
      {},
      { executor_config: { context_window: 10_000 } },
    );
    expect(outcome).toMatchObject({ status: "completed", text: "It says hello." });
    expect(isRefused).toBe(refusals);
    expect(listCompactions(events)).toEqual([{ why, summarized: 3, kept: 1, summary: "a.txt was written." }]);
    const summarized = requests.find(({ messages }) => messages.at(-1)?.text.startsWith("<conversation>"));
    expect(summarized?.messages.at(-1)?.text).toMatch(/do it[^]*file.write[^]*hello/);
    const conversation = requests.at(-1)!.messages.filter(({ role }) => role !== "system");
    expect(conversation[0]?.text).toMatch(/^do it\n\n<summary>[^]*a.txt was written/);
    expect(conversation.flatMap(({ tool_calls }) => tool_calls.map(({ name }) => name))).toEqual(["file_read"]);
    expect(conversation.flatMap(({ tool_results }) => tool_results)).toEqual([expect.stringContaining("hello")]);
  });

  it("gets a shortened tool result if the whole result still does not fit, with the advice to ask for less", async () => {
    const tooLong = { status: 400, type: "invalid_request_error", message: "prompt is too long" };
    const { outcome, events, requests } = await run(
      (request) => {
        if (isSummary(request)) return { text: "nothing yet" };
        const toolResults = request.messages.flatMap(({ tool_results }) => tool_results);
        if (toolResults.length === 0)
          return { tool: call("command_run", { command: "head -c 20000 /dev/zero | tr '\\0' x" }) };
        return toolResults.some((text) => text.length > 10_000) ? { error: tooLong } : { text: "seen" };
      },
      { permissions: { mode: "bypassPermissions" } },
    );
    expect(outcome).toMatchObject({ status: "completed", text: "seen" });
    expect(listCompactions(events)).toEqual([]);
    expect(requests.at(-1)?.messages.at(-1)?.tool_results[0]).toMatch(/characters omitted.*Ask for less/);
  });

  it("fails as provider_invalid_response if nothing can be shortened", async () => {
    const error = { status: 400, type: "invalid_request_error", message: "prompt is too long" };
    const { outcome, requests } = await run([{ error }]);
    expect(outcome).toMatchObject({
      status: "failed",
      reason: "provider_invalid_response",
      message: expect.stringContaining("larger context window"),
    });
    expect(requests).toHaveLength(1);
  });

  it("is not summarized once the run is cancelled", async () => {
    const controller = new AbortController();
    const { outcome, requests } = await run(
      (request) =>
        isSummary(request) ? { hang: true } : { ...readTurn, usage: { input_tokens: 9999, output_tokens: 1 } },
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

it("sends the agent's first message when it resumes a session whose first request failed", async () => {
  let state: Awaited<ReturnType<typeof openContext>>["saved"]["state"] = null;
  let isRefused = true;
  const server = await startModelServer(() =>
    isRefused ? { error: { status: 401, message: "no" } } : { text: "hello" },
  );
  cleanups.push(server.stop);
  const attempt = async (overrides: Partial<Invocation>) => {
    const opened = await openContext();
    cleanups.push(opened.close);
    opened.saved.state = state;
    const outcome = await executor.run(invocation(server, { first_message: "Be brief." }, overrides), opened.context);
    state = opened.saved.state;
    const init = opened.events.find((event) => event.type === "system" && event.subtype === "init");
    return { outcome, executor_session_id: (init as { executor_session_id: string }).executor_session_id };
  };
  const { outcome, executor_session_id } = await attempt({ prompt: "one" });
  expect(outcome).toMatchObject({ reason: "provider_auth" });
  isRefused = false;
  const resumed = await attempt({ prompt: "two", mode: "resume", executor_session_id });
  expect(resumed.outcome).toMatchObject({ status: "completed" });
  await attempt({ prompt: "three", mode: "resume", executor_session_id });
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
  cleanups.push(server.stop);
  const attempt = async (overrides: Partial<Invocation>) => {
    const opened = await openContext();
    cleanups.push(opened.close);
    opened.saved.state = states.get(overrides.executor_session_id ?? null) ?? null;
    const outcome = await executor.run(invocation(server, {}, overrides), opened.context);
    const init = opened.events.find((event) => event.type === "system" && event.subtype === "init");
    const id = (init as { executor_session_id?: string } | undefined)?.executor_session_id ?? null;
    states.set(id, opened.saved.state);
    return { outcome, id };
  };
  const lastPrompts = () =>
    server.requests.at(-1)?.messages.flatMap(({ role, text }) => (role === "user" ? [text] : []));

  const { id } = await attempt({ prompt: "one" });
  expect((await attempt({ prompt: "two", mode: "resume", executor_session_id: id })).id).toBe(id);
  expect(lastPrompts()).toEqual(["one", "two"]);
  const fork = await attempt({ prompt: "other", mode: "fork", executor_session_id: id });
  expect(fork.id).not.toBe(id);
  expect(lastPrompts()).toEqual(["one", "two", "other"]);
  await attempt({ prompt: "three", mode: "resume", executor_session_id: id });
  expect(lastPrompts()).toEqual(["one", "two", "three"]);
  expect((await attempt({ mode: "resume", executor_session_id: "unknown" })).outcome).toMatchObject({
    status: "failed",
    reason: "session_not_found",
  });
});
