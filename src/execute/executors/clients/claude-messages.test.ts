import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createClaudeReader } from "./claude-messages.ts";
import type { Conclusion, ClientMessage } from "./definition.ts";

const fixtures = join(import.meta.dirname, "..", "..", "..", "..", "test", "fixtures", "clients");

/** Recorded from the real client. */
function replay(name: string) {
  const lines = readFileSync(join(fixtures, `${name}.jsonl`), "utf8")
    .trim()
    .split("\n");
  return replayLines(lines.map((line) => JSON.parse(line) as Record<string, unknown>));
}

function replayLines(lines: readonly Record<string, unknown>[]): {
  messages: (ClientMessage | null)[];
  end: Conclusion | null;
} {
  const reader = createClaudeReader();
  const messages = lines.flatMap((line): (ClientMessage | null)[] => [...(reader.read(line) ?? [null])]);
  return { messages, end: reader.conclude({ exitCode: 0, stderr: "" }) };
}

const ofType = <T extends ClientMessage["type"]>(messages: readonly (ClientMessage | null)[], type: T) =>
  messages.filter((message): message is Extract<ClientMessage, { type: T }> => message?.type === type);

test("reads a turn with a tool as session, text, tool use, tool result and usage", () => {
  const { messages, end } = replay("claude-tool");
  expect(messages.map((message) => message?.type)).toEqual([
    "session",
    "assistant",
    "tool_use",
    "tool_result",
    "assistant",
    "usage",
  ]);
  expect(ofType(messages, "session")[0]).toMatchObject({
    id: "9bea4200-91ba-4502-9673-3190517385c0",
    data: { permission_mode: "acceptEdits" },
  });
  expect(ofType(messages, "tool_use")).toEqual([
    { type: "tool_use", tool_use_id: "call_6_1", name: "Write", input: { file_path: "hello.txt", content: "hi" } },
  ]);
  expect(ofType(messages, "tool_result")[0]).toMatchObject({ tool_use_id: "call_6_1", is_error: false });
  expect(ofType(messages, "usage")).toEqual([
    {
      type: "usage",
      usage: { input_tokens: 23214, output_tokens: 61, cost_usd: expect.closeTo(0.094076, 9) as number },
    },
  ]);
  expect(end).toEqual({ ok: true, text: "Done, hello.txt is there." });
});

test("streams text in pieces and then once in full, and reports usage in increments with the cost last", () => {
  const { messages } = replay("claude-partial");
  const whole = ofType(messages, "assistant").map(({ text }) => text);
  expect(
    ofType(messages, "partial")
      .map(({ text }) => text)
      .join(""),
  ).toBe(whole.join(""));
  const usage = ofType(messages, "usage").map((message) => message.usage);
  expect(usage[0]).toEqual({ input_tokens: 11564, output_tokens: 26, cost_usd: null });
  expect(usage.at(-1)).toMatchObject({ input_tokens: 0, output_tokens: 0 });
  expect(usage.at(-1)?.cost_usd).toBeGreaterThan(0);
});

test("charges a continued session only for what this turn used", () => {
  const usage = ofType(replay("claude-resume").messages, "usage").at(-1)?.usage;
  expect(usage).toEqual({ input_tokens: 11591, output_tokens: 36, cost_usd: expect.closeTo(0.047084, 9) as number });
});

test("reports a denied tool at once, although the client calls the turn a success", () => {
  const { messages, end } = replay("claude-denied");
  expect(ofType(messages, "denied")).toEqual([
    { type: "denied", tool_use_id: "call_20_1", tool: "Write", message: expect.stringContaining("granted") as string },
  ]);
  expect(end?.ok).toBe(true);
});

test("counts a denial that only the result reports if no later call succeeded", () => {
  const result = (id: string, is_error: boolean) => ({
    type: "user",
    message: { content: [{ type: "tool_result", tool_use_id: id, is_error, content: "x" }] },
  });
  const last = { type: "result", subtype: "success", permission_denials: [{ tool_use_id: "a", tool_name: "Bash" }] };
  const denied = (messages: Record<string, unknown>[]) => ofType(replayLines(messages).messages, "denied");
  expect(denied([result("a", true), last])).toEqual([{ type: "denied", tool_use_id: "a", tool: "Bash" }]);
  expect(denied([result("a", true), result("b", false), last])).toEqual([]);
});

test("counts a call of a disallowed tool as denied", () => {
  const { messages, end } = replay("claude-disallowed");
  expect(ofType(messages, "denied")).toMatchObject([{ tool: "Write" }]);
  expect(end?.ok).toBe(true);
});

test.each([
  ["claude-error-401", "provider_auth"],
  ["claude-error-429", "provider_rate_limit"],
  ["claude-error-500", "provider_network"],
  ["claude-refused-connection", "provider_network"],
  ["claude-max-turns", "max_turns"],
  ["claude-unknown-session", "session_not_found"],
])("maps %s to %s", (name, reason) => {
  expect(replay(name).end).toMatchObject({ ok: false, reason });
});

test("reports an API error as an error, not as text of the agent", () => {
  const { messages } = replay("claude-error-401");
  expect(ofType(messages, "assistant")).toEqual([]);
  expect(ofType(messages, "error")).toEqual([
    { type: "error", code: "authentication_failed", message: expect.stringContaining("Invalid API key") as string },
  ]);
  expect(ofType(messages, "system").map(({ subtype }) => subtype)).toEqual(["claude_api_retry"]);
});

test("concludes nothing for an interrupted client", () => {
  expect(replay("claude-interrupted").end).toBeNull();
});

test("drops the result once the agent works again, but not for messages of its subagents", () => {
  const result = { type: "result", subtype: "success", result: "Done." };
  const message = (parent: string | null) => ({
    type: "assistant",
    parent_tool_use_id: parent,
    message: { content: [{ type: "text", text: "x" }] },
  });
  expect(replayLines([result, message("toolu_1")]).end).toMatchObject({ ok: true, text: "Done." });
  expect(replayLines([result, message(null)]).end).toBeNull();
  expect(replayLines([result, { type: "system", subtype: "init", session_id: "s" }]).end).toBeNull();
  expect(replayLines([result, message(null), { ...result, result: "Done again." }]).end).toMatchObject({
    text: "Done again.",
  });
});

test("reports an exhausted budget", () => {
  const last = { type: "result", subtype: "error_max_budget_usd", is_error: true, errors: ["Reached maximum budget"] };
  expect(replayLines([last]).end).toMatchObject({ ok: false, reason: "budget_exceeded" });
});

test("reads the reason for a failed start from stderr", () => {
  const end = (stderr: string) => createClaudeReader().conclude({ exitCode: 1, stderr });
  expect(end("No conversation found with session ID: x")).toMatchObject({ reason: "session_not_found" });
  expect(end("Invalid API key · Please run /login")).toMatchObject({ reason: "provider_auth" });
  expect(end("error: unknown option")).toBeNull();
});

test("never throws, whatever the message", () => {
  const values = [
    null,
    0,
    "x",
    [],
    {},
    [null],
    [{ type: "text" }],
    { content: 5 },
    { content: [null, 7, { type: "tool_use" }] },
  ];
  const types = ["system", "assistant", "user", "stream_event", "result", "nonsense", undefined];
  for (const type of types) {
    for (const value of values) {
      const message = {
        type,
        subtype: value,
        message: value,
        event: value,
        usage: value,
        modelUsage: value,
        errors: value,
        permission_denials: value,
      };
      const reader = createClaudeReader();
      expect(() => reader.read(message)).not.toThrow();
      expect(() => reader.conclude({ exitCode: 0, stderr: "" })).not.toThrow();
    }
  }
  expect(createClaudeReader().read({ type: "nonsense" })).toBeNull();
});
