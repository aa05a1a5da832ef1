import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { describeContract } from "../../../../test/contract/contract.ts";
import { executorContract } from "../../../../test/contract/executor.ts";
import { createInvocation } from "../../../../test/fixtures/execute/memory-port.ts";
import { openContext } from "../../../../test/fixtures/execute/open-context.ts";
import type { Turn } from "../../../../test/model-server/script.ts";
import { startModelServer } from "../../../../test/model-server/server.ts";
import { createModelExecutor } from "./model-executor.ts";
import {
  call,
  cleanups,
  executor,
  invocation,
  newId,
  results,
  run,
  types,
} from "../../../../test/fixtures/execute/model-run.ts";

describeContract("the model executor", executorContract, async () => {
  const server = await startModelServer((request) => {
    const hasAnswered = request.messages.some(({ role }) => role === "assistant");
    if (request.messages.some(({ text }) => text.includes("fail"))) return { error: { status: 401, message: "no" } };
    if (request.messages.some(({ text }) => text.includes("endless")) && !hasAnswered)
      return { tool: call("command_run", { command: "sleep 1000" }) };
    if (request.messages.some(({ text }) => text.includes("stubborn")) && !hasAnswered)
      return { tool: call("command_run", { command: "trap '' TERM; while :; do sleep 1; done" }) };
    if (request.messages.some(({ text }) => text.includes("receiving")))
      return { text: `received ${request.messages.at(-1)?.text}` };
    if (request.messages.some(({ text }) => text.includes("asking")) && !hasAnswered)
      return { tool: call("command_run", { command: "echo did-$((40 + 1))" }) };
    if (request.messages.some(({ text }) => text.includes("leaving")) && !hasAnswered)
      return { tool: call("command_run", { command: "sleep 1000 >/dev/null 2>&1 & echo left" }) };
    return { text: "done" };
  });
  cleanups.push(server.stop);
  const permissions = { mode: "bypassPermissions" as const };
  return {
    executor,
    succeeding: invocation(server, { permissions }),
    failing: invocation(server, { permissions }, { prompt: "fail" }),
    endless: invocation(server, { permissions }, { prompt: "endless" }),
    stubborn: invocation(server, { permissions }, { prompt: "stubborn" }),
    leaving: invocation(server, { permissions }, { prompt: "leaving" }),
    receivingInput: invocation(server, {}, { prompt: "receiving" }),
    asking: { invocation: invocation(server, {}, { prompt: "asking" }), edited: { command: "echo did-$((40 + 2))" } },
    async open() {
      const opened = await openContext();
      cleanups.push(opened.close);
      return opened;
    },
  };
});

it("writes a file, reads twice concurrently and answers, with an event for each step", async () => {
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

it("records a command and tells the model its exit code", async () => {
  const { events, requests } = await run(
    [{ tool: call("command_run", { command: "echo out; echo err >&2; exit 3" }) }, { text: "I saw it." }],
    { permissions: { mode: "bypassPermissions" } },
  );
  expect(results(events)[0]).toMatchObject({ output: { ok: true, exit_code: 3, stdout: "out\n", stderr: "err\n" } });
  expect(requests.at(-1)?.messages.at(-1)?.tool_results[0]).toContain('"exit_code":3');
});

describe("permission modes", () => {
  const allToolTurns: Turn[] = [
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
  ] as const)("%s allows tools by their effect", async (mode, faults, files) => {
    const { events, requests } = await run(allToolTurns, { permissions: { mode } });
    const codes = results(events).map(({ output }) => (output as { error?: { code: string } }).error?.code ?? null);
    expect(codes).toEqual(faults);
    const listed = results(events).at(-1)?.output as { entries: { path: string }[] };
    expect(listed.entries.map(({ path }) => path)).toEqual(files);
    const offered = JSON.stringify(requests[0]?.body["tools"]);
    expect(offered.includes("file_write")).toBe(mode !== "plan");
  });

  it("pre-approves the tools in allowed_tools, and hides the tools in denied_tools", async () => {
    const permissions = { mode: "default" as const, allowed_tools: ["file.*"], denied_tools: ["file_list"] };
    const { events } = await run(allToolTurns, { permissions });
    const codes = results(events).map(({ output }) => (output as { error?: { code: string } }).error?.code ?? null);
    expect(codes).toEqual([null, "permission_denied", "unknown_tool"]);
  });

  it("matches all tools of a server by mcp__SERVER, and warns about a pattern that matches no tool", async () => {
    const server = join(import.meta.dirname, "../../../../test/fixtures/mcp/server.mjs");
    const bothCalls = { tools: [call("mcp__notes__change", { word: "b" }), call("mcp__other__look", { word: "c" })] };
    const notes = { command: process.execPath, args: [server] };
    const { events } = await run([bothCalls, { text: "done" }], {
      mcp_servers: { notes, other: notes },
      permissions: {
        mode: "default",
        allowed_tools: ["mcp__notes", "mcp__typo__*", "file.*"],
        denied_tools: ["mcp__other", "Web*"],
      },
    });
    const codes = results(events).map(({ output }) => (output as { error?: { code: string } }).error?.code ?? null);
    expect(codes).toEqual([null, "unknown_tool"]);
    const warnings = events.filter((event) => event.type === "system" && event.subtype === "unmatched_permission");
    expect(warnings).toMatchObject([{ data: { pattern: "mcp__typo__*" } }, { data: { pattern: "Web*" } }]);
  });
});

it("tells the model what is wrong with an invalid call, so that it can correct it", async () => {
  const truncatedCall = { ...call("file_write", { path: "a.txt", content: "hello" }), cut_input: 12 };
  const { outcome, events, work } = await run([
    { tools: [call("file_raed", { path: "a" }), call("file_read", {}), truncatedCall] },
    { text: "I see." },
  ]);
  expect(outcome).toMatchObject({ status: "completed", text: "I see." });
  expect(results(events).map(({ output }) => (output as { error?: unknown }).error)).toEqual([
    { code: "unknown_tool", message: expect.stringContaining("Unknown tool: file_raed. Did you mean file.read?") },
    { code: "invalid_input", message: expect.stringContaining("input.path") },
    { code: "invalid_input", message: expect.stringContaining("not valid JSON") },
  ]);
  expect(readdirSync(work)).toEqual([]);
});

it("does not fail a run that repeats a call if other calls changed the result in between", async () => {
  const list = { tool: call("file_list", {}) };
  const write = (content: string) => ({ tool: call("file_write", { path: "a", content }) });
  const turns = [write("1"), list, write("12"), list, write("123"), list, { text: "done" }];
  expect((await run(turns)).outcome).toMatchObject({ status: "completed" });
});

it.each([
  [{ provider: "antropic" }, /Did you mean anthropic/],
  [{ provider: "openai" }, /OPENAI_API_KEY/],
  [{ provider: "ollma" }, /Did you mean ollama/],
])("refuses %j before any request", async (agent, message) => {
  const { outcome, requests } = await run([{ text: "never" }], agent);
  expect(outcome).toMatchObject({ status: "failed", message: expect.stringMatching(message) });
  expect(requests).toEqual([]);
});

it("uses the provider of drover.yaml if neither the agent nor the profile names one", async () => {
  const opened = await openContext();
  cleanups.push(opened.close);
  const modelExecutor = createModelExecutor({
    env: {},
    namedProviders: { config: "scripted" },
    newId,
    version: "0",
    checkInput: async () => [],
  });
  const outcome = await modelExecutor.run(
    createInvocation("r1", { type: "autonomous" }, { prompt: "do it" }),
    opened.context,
  );
  expect(outcome).toMatchObject({ status: "completed", text: expect.stringContaining("built-in script") });
});

it("uses an agent's MCP servers, stops them with the run, and reports those that cannot be used", async () => {
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
