import fc from "fast-check";
import { expect, test } from "vitest";
import { parseJson } from "./structured-text.ts";

/** Makes the text too long for the fast path. */
const padToSlowPath = (text: string): string => text + " ".repeat(20_000);

const readText = (text: string) => {
  const read = parseJson(text);
  return read.ok ? { value: read.value, inexact: read.inexact } : read.faults;
};

test.each([
  ["a repeated key", '{\n"a": 1,\n"a": 1}', 3, "a"],
  ["a key repeated with an escape", '{"a": 1,\n"\\u0061": 2}', 2, "a"],
  ["a repeated key in a nested object", '{"a": [{"b": {"c": 1,\n\n"c": {}}}]}', 3, "c"],
  ["a repeated empty key", '[{"": 1, "": ":"}]', 1, ""],
])("refuses %s, and reports its line", (_, text, line, key) => {
  const faults = [{ line, problem: `the key "${key}" is repeated` }];
  expect(readText(text)).toEqual(faults);
  expect(readText(padToSlowPath(text))).toEqual(faults);
});

test("handles colons, quotes and backslashes in strings", () => {
  const value = { "a:": ':"', 'b"': "\\", "c\\": ['\\"', ":"], d: { a: { a: ":" } }, __proto__: null };
  const text = `{"__proto__": {"__proto__": 1}, ${JSON.stringify(value).slice(1)}`;
  expect(readText(text)).toEqual({ value: JSON.parse(text), inexact: [] });
});

test("reports a number that cannot be represented exactly", () => {
  const inexact = [{ path: ["a", 1], text: "12345678901234567890" }];
  expect(readText('{"a": [1.5, 12345678901234567890]}')).toMatchObject({ inexact });
});

test("reads short and long JSON alike", () => {
  const key = fc.oneof(fc.constantFrom("a", "b", "__proto__", 'c"', ":", "\\"), fc.string());
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof({ depthSize: "small" }, fc.string(), fc.double(), fc.boolean(), tie("list"), tie("map")),
    list: fc.array(tie("tree"), { maxLength: 4 }).map((items) => `[${items.map(toText).join(",\n")}]`),
    map: fc
      .array(fc.tuple(key, tie("tree")), { maxLength: 4 })
      .map((items) => `{${items.map(([name, item]) => `${JSON.stringify(name)} :\n ${toText(item)}`).join(", ")}}`),
  }));
  fc.assert(
    fc.property(tree, key, (value, name) => {
      const text = toText(value);
      expect(readText(text)).toEqual(readText(padToSlowPath(text)));
      const [short, long] = [parseJson(text), parseJson(padToSlowPath(text))];
      if (short.ok && long.ok)
        for (const path of [[], [name], [0], [name, name], ["a", 0]])
          expect(short.findLine(path)).toBe(long.findLine(path));
    }),
  );
});

/** Lists and maps are already text. */
function toText(value: unknown): string {
  return typeof value === "string" && /^[[{]/.test(value) ? value : (JSON.stringify(value) ?? "null");
}
