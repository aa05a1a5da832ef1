import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { ClientMessage } from "./definition.ts";
import { createGeminiReader } from "./gemini-messages.ts";

const fixtures = join(import.meta.dirname, "..", "..", "..", "..", "test", "fixtures", "clients");

/** Replays a recording of the real client. */
function replay(name: string, exitCode = 0, stderr = "") {
  const reader = createGeminiReader({ session: null });
  const lines = readFileSync(join(fixtures, `${name}.jsonl`), "utf8")
    .trim()
    .split("\n");
  const messages = lines.flatMap(
    (line): readonly (ClientMessage | null)[] => reader.read(JSON.parse(line) as Record<string, unknown>) ?? [null],
  );
  return { messages, end: reader.conclude({ exitCode, stderr }) };
}

const selectType = <T extends ClientMessage["type"]>(messages: readonly (ClientMessage | null)[], type: T) =>
  messages.filter((message): message is Extract<ClientMessage, { type: T }> => message?.type === type);
const listTypes = (messages: readonly (ClientMessage | null)[]) =>
  messages.map((message) => message?.type).filter((type) => type !== "partial");

test("reads a turn with a tool as session, text, tool use, tool result and usage", () => {
  const { messages, end } = replay("gemini-tool");
  expect(listTypes(messages)).toEqual(["session", "assistant", "tool_use", "tool_result", "assistant", "usage"]);
  expect(selectType(messages, "tool_use")[0]).toMatchObject({
    name: "write_file",
    input: { file_path: "hello.txt", content: "hi" },
  });
  expect(selectType(messages, "tool_result")[0]).toMatchObject({ is_error: false });
  expect(selectType(messages, "usage")[0]?.usage).toEqual({
    input_tokens: expect.any(Number) as number,
    output_tokens: expect.any(Number) as number,
    cost_usd: null,
  });
  expect(selectType(messages, "usage")[0]?.usage.output_tokens).toBeGreaterThan(0);
  expect(end).toEqual({ ok: true, text: selectType(messages, "assistant").at(-1)?.text });
});

test("streams text in pieces and then once in full", () => {
  const { messages, end } = replay("gemini-text");
  const whole = selectType(messages, "assistant").map(({ text }) => text);
  expect(whole).toEqual(["Hello there, world of clients."]);
  expect(
    selectType(messages, "partial")
      .map(({ text }) => text)
      .join(""),
  ).toBe(whole[0]);
  expect(selectType(messages, "partial").length).toBeGreaterThan(1);
  expect(end).toEqual({ ok: true, text: whole[0] });
});

test.each([
  ["gemini-denied-default", "write_file"],
  ["gemini-denied-plan", "write_file"],
  ["gemini-shell-auto-edit", "run_shell_command"],
])("reads %s as a denial of %s", (name, tool) => {
  expect(selectType(replay(name).messages, "denied").map((message) => message.tool)).toEqual([tool]);
});

test("reports an unknown tool as an error, not as a denial", () => {
  const { messages } = replay("gemini-unknown-tool");
  expect(selectType(messages, "tool_result")[0]?.is_error).toBe(true);
  expect(selectType(messages, "denied")).toEqual([]);
});

test.each([
  ["gemini-error-401", "provider_auth"],
  ["gemini-error-429", "provider_rate_limit"],
  ["gemini-error-500", "provider_network"],
  ["gemini-cut", "provider_network"],
  ["gemini-max-turns", "max_turns"],
])("maps %s to %s", (name, reason) => {
  expect(replay(name, 1).end).toMatchObject({ ok: false, reason });
});

test.each([
  { type: "message", role: "assistant", content: "And" },
  { type: "tool_use", tool_id: "t", tool_name: "read_file" },
])("drops the result once a $type follows", (line) => {
  const reader = createGeminiReader({ session: null });
  const end = () => reader.conclude({ exitCode: null, stderr: "" });
  reader.read({ type: "result", status: "success" });
  expect(end()).toMatchObject({ ok: true });
  reader.read(line);
  expect(end()).toBeNull();
});

test("returns no conclusion for a killed client, even if it exits with 0", () => {
  expect(replay("gemini-killed-sigterm").end).toBeNull();
});

test.each([
  [41, "When using Gemini API, you must specify the GEMINI_API_KEY environment variable.", "provider_auth"],
  [42, "Error resuming session: No previous sessions found for this project.", "session_not_found"],
  [55, "\u001b[31mGemini CLI is not running in a trusted directory.\u001b[0m", "refused"],
])("maps exit %i without output to its reason", (exitCode, stderr, reason) => {
  const reader = createGeminiReader({ session: "fa2d6767-54a0-462e-9cea-16714d03e360" });
  expect(reader.conclude({ exitCode, stderr })).toMatchObject({ ok: false, reason });
});

test("never throws, whatever the message", () => {
  const reader = createGeminiReader({ session: null });
  for (const type of ["init", "message", "tool_use", "tool_result", "error", "result", "new"])
    for (const value of [null, 7, "x", [], {}])
      expect(() =>
        reader.read({
          type,
          role: "assistant",
          content: value,
          tool_id: value,
          error: value,
          stats: value,
          status: value,
        }),
      ).not.toThrow();
});
