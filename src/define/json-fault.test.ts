import { assert, constantFrom, json, nat, property, tuple } from "fast-check";
import { expect, test } from "vitest";
import { findJsonFault } from "./json-fault.ts";
import { parseJson } from "./structured-text.ts";

test.each([
  ["an extra comma", '{\n  "a": 1,\n}', 3, "comma"],
  ["a missing comma", '{\n  "a": 1\n  "b": 2\n}', 3, "comma"],
  ["a missing colon", '{\n  "a" 1}', 2, "colon"],
  ["a comment", '{\n  // why\n  "a": 1}', 2, "comments"],
  ["single quotes", "{\n\n'a': 1}", 3, "double quotes"],
  ["an unterminated string", '{\n  "a": "x\n}', 2, "not closed"],
  ["an unknown word", '{\n  "a": yes\n}', 2, '"yes"'],
  ["an unclosed brace", '{\n  "a": 1\n', 3, "never closed"],
  ["two values", "{}\n{}", 2, "followed by more text"],
  ["an invalid escape", '{\n"a": "\\x"}', 2, "escape"],
  ["a list that ends in a comma", "[1,\n2,\n]", 3, "comma"],
  ["an empty file", "", 1, "empty"],
  ["a leading zero", "[\n01]", 2, '"01"'],
])("finds the line of %s", (_, text, line, word) => {
  const read = parseJson(text);
  expect(read).toMatchObject({ ok: false, faults: [{ line, problem: expect.stringContaining(word) }] });
});

test("refuses a repeated key", () => {
  expect(parseJson('{"a": 1,\n"a": 2}')).toMatchObject({ ok: false, faults: [{ line: 2 }] });
});

test("finds a position and a reason for all text that JSON.parse rejects", () => {
  const broken = tuple(json({ maxDepth: 3 }), nat(), constantFrom("", ",", "}", "]", '"', "x", "'", "\n", ":", "{"))
    .map(
      ([text, offset, piece]) => text.slice(0, offset % text.length) + piece + text.slice((offset % text.length) + 1),
    )
    .filter((text) => !isJson(text));
  assert(
    property(broken, (text) => {
      const { offset, problem } = findJsonFault(text);
      expect(problem).not.toBe("it cannot be read as JSON");
      expect(offset).toBeLessThanOrEqual(text.length);
    }),
    { numRuns: 2000 },
  );
});

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
