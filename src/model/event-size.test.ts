import { describe, expect, it } from "vitest";
import { executionStarted } from "../../test/fixtures/record/sample.ts";
import type { RunEvent } from "./event.ts";
import { replaceLargeEvent, isEventTooLarge, maxEventLength, truncateEvent } from "./event-size.ts";
import { findExceededLimit } from "./json-limits.ts";

const huge = "x".repeat(2 * maxEventLength);
const nestLists = (depth: number): unknown => JSON.parse("[".repeat(depth) + "]".repeat(depth));
const createNames = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`name${index}`, index]));
const createResult = (output: unknown): RunEvent => ({
  type: "tool_result",
  tool_use_id: "t",
  is_error: false,
  output,
});
const isTooLarge = (event: RunEvent): boolean => isEventTooLarge(event, JSON.stringify(event));

describe("an event that is too large", () => {
  const events: [string, RunEvent][] = [
    ["long text", { type: "assistant", text: huge }],
    ["a long raw message", { type: "assistant", text: "short", raw: { huge } }],
    ["long text and a long raw message", { type: "assistant", text: huge, raw: { huge } }],
    ["a long tool result", createResult(huge)],
    ["a result with many names", createResult(createNames(6000))],
    ["a result with many values", createResult(Array.from({ length: 200_000 }, () => 1))],
    ["a deeply nested result", createResult(nestLists(80))],
    ["a long input", { type: "tool_use", tool_use_id: "t", name: "write", input: { content: huge } }],
    ["long data", { type: "system", subtype: "x", data: [huge] }],
    ["a long error message", { type: "error", message: huge }],
    ["control characters", { type: "assistant", text: "\u0000".repeat(maxEventLength / 2) }],
    ["surrogate pairs at the limit", { type: "assistant", text: "\ud83d\ude00".repeat(maxEventLength) }],
    ["a long command", executionStarted("0190aaaa-0000-7000-8000-000000000000", { command: huge, argv: [huge, huge] })],
  ];
  it.each(events)("with %s is truncated by the runner and marked as truncated", (_, event) => {
    expect(isTooLarge(event)).toBe(true);
    const truncatedEvent = truncateEvent(event);
    expect(isTooLarge(truncatedEvent)).toBe(false);
    expect(truncatedEvent.type).toBe(event.type);
    expect(JSON.stringify(truncatedEvent)).toContain('"truncated":true');
  });

  it.each(events)("with %s is replaced by the coordinator under the same number", (_, event) => {
    const numbered = { n: 7, at: "2026-01-01T00:00:00.000Z", event };
    // The body of a report bounds the depth.
    const expected = JSON.stringify(event).length < 1000 ? event : { type: "error", code: "event_too_large" };
    expect(replaceLargeEvent(numbered)).toMatchObject({ n: 7, event: expected });
  });

  it("is replaced by the runner if nothing in it can be truncated", () => {
    const file: RunEvent = { type: "file", path: huge, size: 1, sha256: "a", media_type: "b" };
    expect(truncateEvent(file)).toMatchObject({ type: "error", code: "event_too_large" });
  });

  it("keeps its text if only the raw message is too long", () => {
    expect(truncateEvent({ type: "assistant", text: "short", raw: huge })).toEqual({
      type: "assistant",
      text: "short",
      truncated: true,
    });
  });
});

describe("findExceededLimit", () => {
  const limits = { depth: 3, values: 10, names: 3 };
  it.each([
    ["{}", null],
    ['{"a":1,"b":[1,2,3],"c":{"a":1}}', null],
    ["[[[[]]]]", "depth"],
    ["[1,2,3,4,5,6,7,8,9,10,11,12]", "values"],
    ['{"a":1,"b":1,"c":1,"d":1}', "names"],
    ['[{"a":1},{"a":1},{"a":1},{"a":1}]', null],
    ['["[[[[{{{{,,,,,,,,,,,,,,,:::::"]', null],
    ['["\\"[[[[,,,,,,,,,,,,"]', null],
    ['{"a":1,"b":1,"\\u0063":1,"d":1}', "names"],
    ["", null],
  ])("returns for %s: %s", (text, exceeded) => {
    expect(findExceededLimit(Buffer.from(text), limits)).toBe(exceeded);
  });
});
