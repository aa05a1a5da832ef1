import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createCodexReader } from "./codex-messages.ts";
import type { PermissionMode, ClientMessage } from "./definition.ts";

const fixtures = join(import.meta.dirname, "..", "..", "..", "..", "test", "fixtures", "clients");
const session = "01a1e1fc-d61e-7cb2-ae18-2d213749191e";

/** Reads a recording of the real client, then its thread's file. */
function replay(
  name: string,
  options: { rollout?: string; resumes?: boolean; mode?: PermissionMode; exit?: number } = {},
) {
  const reader = createCodexReader({ session: options.resumes ? session : null, mode: options.mode ?? "acceptEdits" });
  const lines = [...readLines(name), ...(options.rollout ? readLines(options.rollout) : []), '{"type":"rollout_end"}'];
  const messages = lines.flatMap(
    (line): readonly (ClientMessage | null)[] => reader.read(JSON.parse(line) as Record<string, unknown>) ?? [null],
  );
  return { messages, end: reader.conclude({ exitCode: options.exit ?? 0, stderr: "" }), thread: reader.getSession() };
}

const readLines = (name: string): string[] =>
  readFileSync(join(fixtures, `${name}.jsonl`), "utf8")
    .trim()
    .split("\n");
const ofType = <T extends ClientMessage["type"]>(messages: readonly (ClientMessage | null)[], type: T) =>
  messages.filter((message): message is Extract<ClientMessage, { type: T }> => message?.type === type);

test("reads a turn with a tool as session, text, tool use, tool result and usage", () => {
  const { messages, end, thread } = replay("codex-tool");
  expect(messages.map((message) => message?.type)).toEqual([
    "session",
    "assistant",
    "tool_use",
    "tool_result",
    "assistant",
    "usage",
  ]);
  expect(thread).toBe("01a1e1fd-2b31-71f1-8186-8ae864ee66cc");
  expect(messages[2]).toMatchObject({
    name: "file_change",
    input: { changes: [{ path: "/home/dev/work/hello.txt", kind: "add" }] },
  });
  expect(messages[3]).toMatchObject({ tool_use_id: "item_1", is_error: false });
  expect(messages.at(-1)).toEqual({ type: "usage", usage: { input_tokens: 19560, output_tokens: 61, cost_usd: null } });
  expect(end).toEqual({ ok: true, text: "Done, hello.txt is there." });
});

test("reports a command with its output and its exit code", () => {
  const { messages } = replay("codex-shell");
  expect(ofType(messages, "tool_use")).toHaveLength(1);
  expect(ofType(messages, "tool_result")[0]).toMatchObject({ is_error: false, output: { exit_code: 0 } });
});

test.each([
  ["codex-resume-tool", "codex-rollout-resume", { input_tokens: 200, output_tokens: 40, cost_usd: null }],
  ["codex-fork", "codex-rollout-fork", { input_tokens: 100, output_tokens: 20, cost_usd: null }],
])("charges %s for this turn, not for the whole thread", (name, rollout, usage) => {
  const { messages } = replay(name, { rollout, resumes: true });
  expect(ofType(messages, "usage").map((message) => message.usage)).toEqual([usage]);
  expect(ofType(messages, "system")).toEqual([]);
});

test("counts no usage for a continued session if the thread's file is missing", () => {
  const { messages } = replay("codex-resume-tool", { resumes: true });
  expect(ofType(messages, "usage")).toEqual([]);
  expect(ofType(messages, "system")[0]).toMatchObject({
    subtype: "usage_unknown",
    data: { of_session: { input_tokens: 62289 } },
  });
});

test("reports a write that the sandbox blocked as a denial", () => {
  const { messages } = replay("codex-denied-read-only-shell", { mode: "default" });
  expect(ofType(messages, "tool_result")[0]?.is_error).toBe(true);
  expect(ofType(messages, "denied")).toMatchObject([{ tool: "command_execution", tool_use_id: "item_0" }]);
});

test.each([
  ["codex-rollout-denied-shell", "exec_command"],
  ["codex-rollout-denied-patch", "apply_patch"],
])("finds a call that the stream omits in %s", (rollout, tool) => {
  const { messages } = replay("codex-denied-read-only-patch", { rollout, mode: "plan" });
  expect(ofType(messages, "tool_use").map(({ name }) => name)).toEqual([tool]);
  expect(ofType(messages, "tool_result")[0]?.is_error).toBe(true);
  expect(ofType(messages, "denied").map((message) => message.tool)).toEqual([tool]);
});

test("reports a call from the stream only once", () => {
  const { messages } = replay("codex-shell", { rollout: "codex-rollout-denied-shell" });
  const shown = ofType(messages, "tool_use").filter(({ name }) => name === "command_execution");
  expect(shown).toHaveLength(1);
  const reader = createCodexReader({ session: null, mode: "default" });
  const command = "/bin/bash -lc 'echo hi > ro.txt'";
  reader.read({ type: "item.completed", item: { id: "item_0", type: "command_execution", command, exit_code: 1 } });
  const later = readLines("codex-rollout-denied-shell").flatMap(
    (line): readonly (ClientMessage | null)[] => reader.read(JSON.parse(line) as Record<string, unknown>) ?? [null],
  );
  expect(later).toEqual([]);
});

test("drops a denial once a later call succeeds", () => {
  const reader = createCodexReader({ session: null, mode: "default" });
  for (const line of readLines("codex-rollout-denied-patch")) reader.read(JSON.parse(line) as Record<string, unknown>);
  const item = (payload: Record<string, unknown>) => reader.read({ type: "response_item", payload });
  item({ type: "function_call", call_id: "c", name: "exec_command", arguments: '{"cmd":"ls"}' });
  item({ type: "function_call_output", call_id: "c", output: "Wall time: 0\nProcess exited with code 0\nOutput:\n" });
  expect(reader.read({ type: "rollout_end" })?.map(({ type }) => type)).toEqual(["usage"]);
});

test.each([
  ["an MCP server's answer clears it", [{ type: "text", text: "42" }], []],
  ["an unknown tool does not clear it", "unsupported call: nothing", ["denied"]],
  [
    "a failed command does not clear it",
    "Wall time: 0\nProcess exited with code 1\nOutput:\nExit code: 0\n",
    ["denied"],
  ],
])("after a denial, %s", (_what, output, expected) => {
  const reader = createCodexReader({ session: null, mode: "default" });
  for (const line of readLines("codex-rollout-denied-patch")) reader.read(JSON.parse(line) as Record<string, unknown>);
  const item = (payload: Record<string, unknown>) => reader.read({ type: "response_item", payload });
  item({ type: "function_call", call_id: "c", name: "server__tool", arguments: "{}" });
  item({ type: "function_call_output", call_id: "c", output });
  expect(reader.read({ type: "rollout_end" })?.map(({ type }) => type)).toEqual([...expected, "usage"]);
});

test("drops a turn's result once another turn starts", () => {
  const reader = createCodexReader({ session: null, mode: "default" });
  const end = () => reader.conclude({ exitCode: null, stderr: "" });
  reader.read({ type: "turn.completed" });
  expect(end()).toMatchObject({ ok: true });
  reader.read({ type: "turn.started" });
  expect(end()).toBeNull();
});

test.each([
  ["codex-error-401", "provider_auth"],
  ["codex-error-429", "provider_rate_limit"],
  ["codex-error-500", "provider_network"],
  ["codex-cut", "provider_network"],
  ["codex-no-key", "provider_auth"],
])("maps %s to %s", (name, reason) => {
  expect(replay(name, { exit: 1 }).end).toMatchObject({ ok: false, reason });
});

test("reports a repeated error once while codex waits for the network", () => {
  const errors = ofType(replay("codex-reconnecting").messages, "error").map(({ message }) => message);
  expect(new Set(errors).size).toBe(errors.length);
  expect(errors.filter((message) => message.includes("waiting for network"))).toHaveLength(1);
});

test("concludes nothing for a killed client, and session_not_found for an unknown session", () => {
  expect(replay("codex-killed-sigterm", { exit: 143 }).end).toBeNull();
  const reader = createCodexReader({ session, mode: "default" });
  const stderr = `Error: thread/resume: thread/resume failed: no rollout found for thread id ${session} (code -32600)`;
  expect(reader.conclude({ exitCode: 1, stderr })).toMatchObject({ reason: "session_not_found" });
  expect(reader.conclude({ exitCode: 0, stderr: "" })).toBeNull();
});

test("never throws, whatever the message", () => {
  const reader = createCodexReader({ session: null, mode: "default" });
  for (const type of [
    "thread.started",
    "item.started",
    "item.completed",
    "turn.completed",
    "turn.failed",
    "error",
    "response_item",
    "token_usage_record",
  ])
    for (const value of [null, 7, "x", [], {}, { type: "command_execution" }, { type: "custom_tool_call_output" }])
      expect(() =>
        reader.read({ type, item: value, payload: value, usage: value, error: value, message: value }),
      ).not.toThrow();
});
