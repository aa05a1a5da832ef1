import { expect, it } from "vitest";
import { findContextWindow } from "./context-windows.ts";

it.each([
  ["claude-sonnet-4-5", 200_000],
  ["us.anthropic.claude-sonnet-4-5-v1:0", 200_000],
  ["anthropic.claude-haiku-4-5", 200_000],
  ["openai/gpt-5-mini", 400_000],
  ["gpt-4.1-mini", 1_047_576],
  ["gemini-2.5-flash", 1_048_576],
  ["llama3.2", null],
])("knows the window of %s: %s", (model, tokens) => {
  expect(findContextWindow(model)).toBe(tokens);
});
