import { afterEach, expect, it, vi } from "vitest";
import { createCallbacks } from "./callbacks.ts";

afterEach(() => void vi.restoreAllMocks());

it.each([
  ["The answer is too large.", "The answer is too large."],
  ["no such field", "no such field."],
])("prints the error %j of a callback as one sentence, whatever caused it", async (message, sentence) => {
  const warn = vi.spyOn(process, "emitWarning").mockReturnValue();
  const callbacks = createCallbacks({
    onMessage: () => {
      throw new Error(message);
    },
  });
  await callbacks.onMessage({ type: "assistant" });
  callbacks.report("onQuestion", new Error(message));
  expect(warn.mock.calls.map(([text]) => text)).toEqual([
    `onMessage failed: ${sentence} The run continues.`,
    `onQuestion failed: ${sentence} The run continues.`,
  ]);
  expect(callbacks.errors.map((error) => error.message)).toEqual([message, message]);
});
