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

function replayLines(messages: readonly Record<string, unknown>[]): {
  said: (ClientMessage | null)[];
  end: Conclusion | null;
} {
  const reader = createClaudeReader();
  const said = messages.flatMap((message): (ClientMessage | null)[] => [...(reader.read(message) ?? [null])]);
  return { said, end: reader.conclude({ exitCode: 0, stderr: "" }) };
}

const ofType = <T extends ClientMessage["type"]>(said: readonly (ClientMessage | null)[], type: T) =>
  said.filter((one): one is Extract<ClientMessage, { type: T }> => one?.type === type);

test("a turn with a tool becomes session, text, tool use, its result, and usage", () => {
  const { said, end } = replay("claude-tool");
  expect(said.map((one) => one?.type)).toEqual([
    "session",
    "assistant",
    "tool_use",
    "tool_result",
    "assistant",
    "usage",
  ]);
  expect(ofType(said, "session")[0]).toMatchObject({
    id: "9bea4200-91ba-4502-9673-3190517385c0",
    data: { permission_mode: "acceptEdits" },
  });
  expect(ofType(said, "tool_use")).toEqual([
    { type: "tool_use", tool_use_id: "call_6_1", name: "Write", input: { file_path: "hello.txt", content: "hi" } },
  ]);
  expect(ofType(said, "tool_result")[0]).toMatchObject({ tool_use_id: "call_6_1", is_error: false });
  expect(ofType(said, "usage")).toEqual([
    {
      type: "usage",
      usage: { input_tokens: 23214, output_tokens: 61, cost_usd: expect.closeTo(0.094076, 9) as number },
    },
  ]);
  expect(end).toEqual({ ok: true, text: "Done, hello.txt is there." });
});

test("text comes live in pieces and then once whole; usage comes in steps, the cost with the last", () => {
  const { said } = replay("claude-partial");
  const whole = ofType(said, "assistant").map(({ text }) => text);
  expect(
    ofType(said, "partial")
      .map(({ text }) => text)
      .join(""),
  ).toBe(whole.join(""));
  const usage = ofType(said, "usage").map((one) => one.usage);
  expect(usage[0]).toEqual({ input_tokens: 11564, output_tokens: 26, cost_usd: null });
  expect(usage.at(-1)).toMatchObject({ input_tokens: 0, output_tokens: 0 });
  expect(usage.at(-1)?.cost_usd).toBeGreaterThan(0);
});

test("a session that goes on is charged for what this turn used", () => {
  const usage = ofType(replay("claude-resume").said, "usage").at(-1)?.usage;
  expect(usage).toEqual({ input_tokens: 11591, output_tokens: 36, cost_usd: expect.closeTo(0.047084, 9) as number });
});

test("a denied tool is told at once, though the client calls the turn a success", () => {
  const { said, end } = replay("claude-denied");
  expect(ofType(said, "denied")).toEqual([
    { type: "denied", tool_use_id: "call_20_1", tool: "Write", message: expect.stringContaining("granted") as string },
  ]);
  expect(end?.ok).toBe(true);
});

test("where denials stand in the result only, those count that nothing succeeded after", () => {
  const result = (id: string, is_error: boolean) => ({
    type: "user",
    message: { content: [{ type: "tool_result", tool_use_id: id, is_error, content: "x" }] },
  });
  const last = { type: "result", subtype: "success", permission_denials: [{ tool_use_id: "a", tool_name: "Bash" }] };
  const denied = (messages: Record<string, unknown>[]) => ofType(replayLines(messages).said, "denied");
  expect(denied([result("a", true), last])).toEqual([{ type: "denied", tool_use_id: "a", tool: "Bash" }]);
  expect(denied([result("a", true), result("b", false), last])).toEqual([]);
});

test("a tool that was taken away counts as denied when it is tried", () => {
  const { said, end } = replay("claude-disallowed");
  expect(ofType(said, "denied")).toMatchObject([{ tool: "Write" }]);
  expect(end?.ok).toBe(true);
});

test.each([
  ["claude-error-401", "provider_auth"],
  ["claude-error-429", "provider_rate_limit"],
  ["claude-error-500", "provider_network"],
  ["claude-refused-connection", "provider_network"],
  ["claude-max-turns", "max_turns"],
  ["claude-unknown-session", "session_not_found"],
])("%s is %s", (name, reason) => {
  expect(replay(name).end).toMatchObject({ ok: false, reason });
});

test("a fault of the model's service is an error, not something the agent said", () => {
  const { said } = replay("claude-error-401");
  expect(ofType(said, "assistant")).toEqual([]);
  expect(ofType(said, "error")).toEqual([
    { type: "error", code: "authentication_failed", message: expect.stringContaining("Invalid API key") as string },
  ]);
  expect(ofType(said, "system").map(({ subtype }) => subtype)).toEqual(["claude_api_retry"]);
});

test("one that was interrupted says nothing of its end", () => {
  expect(replay("claude-interrupted").end).toBeNull();
});

test("a result counts no more once it works on, whatever its helpers still say", () => {
  const result = { type: "result", subtype: "success", result: "Done." };
  const says = (parent: string | null) => ({
    type: "assistant",
    parent_tool_use_id: parent,
    message: { content: [{ type: "text", text: "x" }] },
  });
  expect(replayLines([result, says("toolu_1")]).end).toMatchObject({ ok: true, text: "Done." });
  expect(replayLines([result, says(null)]).end).toBeNull();
  expect(replayLines([result, { type: "system", subtype: "init", session_id: "s" }]).end).toBeNull();
  expect(replayLines([result, says(null), { ...result, result: "Done again." }]).end).toMatchObject({
    text: "Done again.",
  });
});

test("a budget that was used up is said so", () => {
  const last = { type: "result", subtype: "error_max_budget_usd", is_error: true, errors: ["Reached maximum budget"] };
  expect(replayLines([last]).end).toMatchObject({ ok: false, reason: "budget_exceeded" });
});

test("what cannot begin is told by stderr", () => {
  const end = (stderr: string) => createClaudeReader().conclude({ exitCode: 1, stderr });
  expect(end("No conversation found with session ID: x")).toMatchObject({ reason: "session_not_found" });
  expect(end("Invalid API key · Please run /login")).toMatchObject({ reason: "provider_auth" });
  expect(end("error: unknown option")).toBeNull();
});

test("no message, however strange, makes it throw", () => {
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
