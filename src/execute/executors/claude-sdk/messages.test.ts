import { afterEach, expect, test } from "vitest";
import { openContext } from "../../../../test/fixtures/execute/open-context.ts";
import { createClaudeReader } from "../clients/claude-messages.ts";
import { createEventWriter } from "../clients/event-writer.ts";
import { findUnmatchedPermissions } from "../loop/permissions.ts";
import { findFailedServers, listServerTools } from "./mcp-status.ts";
import { logMessage } from "./messages.ts";
import { getEffect, namesOutsidePath, builtInTools, withRelativePaths } from "./tools.ts";
import { createUsageLimit } from "./usage-limit.ts";

const opened: Awaited<ReturnType<typeof openContext>>[] = [];
afterEach(async () => {
  for (const fixture of opened.splice(0)) await fixture.close();
});

async function log(...messages: unknown[]) {
  const fixture = await openContext();
  opened.push(fixture);
  const reader = createClaudeReader();
  const writer = createEventWriter(fixture.context);
  for (const message of messages) await logMessage(message, reader, writer);
  return fixture.events;
}

test("attaches a message to the first of its events", async () => {
  const message = {
    type: "assistant",
    message: {
      content: [
        { type: "text", text: "hi" },
        { type: "tool_use", id: "t", name: "Read", input: {} },
      ],
    },
    request_id: "r",
  };
  expect(await log(message)).toEqual([
    { type: "assistant", text: "hi", raw: message },
    { type: "tool_use", tool_use_id: "t", name: "Read", input: {} },
  ]);
});

test.each([[null], [undefined], [42], ["text"], [[1]], [{}], [{ type: 7 }], [{ type: "hologram", content: "x" }]])(
  "keeps an unknown message (%j) unchanged",
  async (message) => {
    const [event, ...rest] = await log(message);
    expect(rest).toEqual([]);
    if (message === undefined) expect(event).toBeUndefined();
    else expect(event).toEqual({ type: "system", subtype: "unknown_message", raw: message });
  },
);

test("stores other messages under Claude's own type with a prefix", async () => {
  const status = { type: "system", subtype: "status", status: "requesting" };
  const limit = { type: "rate_limit_event", rate_limit_info: { status: "allowed" } };
  const init = { type: "system", subtype: "init", session_id: "s" };
  expect(await log(status, limit, init, init)).toMatchObject([
    { subtype: "claude_status", raw: status },
    { subtype: "claude_rate_limit_event", raw: limit },
    { subtype: "init", executor_session_id: "s", raw: init },
    { subtype: "claude_init", raw: init },
  ]);
});

test("does not store streamed pieces of text", async () => {
  const delta = { type: "content_block_delta", delta: { type: "text_delta", text: "h" } };
  expect(await log({ type: "stream_event", event: delta })).toEqual([]);
});

test.each([
  ["a result with the time in it", [], { is_error: true, result: "Claude AI usage limit reached|1794965918" }, true],
  ["a rejected request", [{ status: "rejected", resetsAt: 1794965918 }], { is_error: true }, true],
  ["a warning", [{ status: "allowed_warning", resetsAt: 1794965918 }], { is_error: true }, false],
  ["a later success", [{ status: "rejected", resetsAt: 1794965918 }], { is_error: false, result: "ok" }, false],
  [
    "another failure after the limit was lifted",
    [{ status: "rejected", resetsAt: 1 }, { status: "allowed" }],
    { is_error: true },
    false,
  ],
  ["a limit without an end", [{ status: "rejected" }], { is_error: true, result: "limit reached" }, false],
])("recognizes a usage limit with a reset time: %s", (_title, infos, result, isLimit) => {
  const limit = createUsageLimit();
  for (const rate_limit_info of infos) limit.observe({ type: "rate_limit_event", rate_limit_info });
  expect(limit.getResetTime(result)).toBe(isLimit ? "2026-11-18T01:38:38.000Z" : null);
});

test("gives unknown tools the effect execute, and detects paths outside the work directory", () => {
  expect(
    ["Read", "Write", "Bash", "WebFetch", "Hologram", "toString", "mcp__a__b"].map((tool) =>
      getEffect(tool, new Set()),
    ),
  ).toEqual(["read", "edit", "execute", "network", "execute", "execute", "execute"]);
  expect(getEffect("mcp__a__b", new Set(["mcp__a__b"]))).toBe("read");
  const leavesWorkDirectory = (input: Record<string, unknown>): boolean => namesOutsidePath(input, "/work");
  expect([{ file_path: "a" }, { path: "/work/b" }, { notebook_path: "..a" }, {}].map(leavesWorkDirectory)).toEqual(
    Array(4).fill(false),
  );
  expect([{ file_path: "../a" }, { path: "/etc" }, { file_path: "/workshop/x" }].map(leavesWorkDirectory)).toEqual(
    Array(3).fill(true),
  );
});

test("shows paths relative to the work directory, so that a question is the same on every runner", () => {
  const toShownInput = (input: unknown): unknown => withRelativePaths(input, "/work");
  expect(toShownInput({ file_path: "/work/a/b", content: "/work/c" })).toEqual({
    file_path: "a/b",
    content: "/work/c",
  });
  for (const input of [{ file_path: "a/b" }, { path: "/etc/x" }, { command: "ls /work/" }, "text", null])
    expect(toShownInput(input)).toEqual(input);
});

test("reports servers that are not connected and wildcards that match nothing", () => {
  const statuses = [
    { name: "a", status: "connected", tools: [{ name: "x", annotations: { readOnly: true } }, { name: "y" }] },
    { name: "b", status: "failed", error: "ENOENT" },
    { name: "c", status: "needs-auth" },
  ];
  expect(findFailedServers(["a", "b", "c", "d"], statuses)).toEqual([
    { server: "b", message: "ENOENT" },
    { server: "c", message: "its status is needs-auth" },
    { server: "d", message: "Claude Code did not start it" },
  ]);
  const tools = listServerTools(statuses);
  expect(tools).toEqual([
    { name: "mcp__a__x", isReadOnly: true },
    { name: "mcp__a__y", isReadOnly: false },
  ]);
  const permissions = {
    mode: "default" as const,
    allowed_tools: ["mcp__a__*", "mcp__a", "mcp__z__*", "Web*", "Bash(git *)", "mcp__a__nothing"],
    denied_tools: ["Holo*", "Typo"],
  };
  const warnings = findUnmatchedPermissions(permissions, [...builtInTools, ...tools.map(({ name }) => name)]);
  expect(warnings).toMatchObject(
    ["mcp__z__*", "mcp__a__nothing", "Holo*"].map((pattern) => ({
      subtype: "unmatched_permission",
      data: { pattern },
    })),
  );
  expect(warnings).toHaveLength(3);
});
