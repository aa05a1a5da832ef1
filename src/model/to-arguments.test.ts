import { expect, test } from "vitest";
import { checkArguments, toArguments } from "./to-arguments.ts";

const options = (parameters: Record<string, unknown>, style: "comma" | "repeat" | "json" = "comma") => {
  const { arguments: words, faults } = toArguments(parameters, style);
  expect(faults).toEqual([]);
  return words;
};

test("passes strings and numbers as separate words after their option", () => {
  expect(options({ url: "https://example.com", depth: 2 })).toEqual(["--url", "https://example.com", "--depth", "2"]);
});

test("joins a value that starts with a dash to its option with an equals sign", () => {
  expect(options({ message: "--force", n: -5, dash: "-" })).toEqual(["--message=--force", "--n=-5", "--dash=-"]);
});

test("passes true as a flag, omits false, null and empty lists, and keeps empty strings", () => {
  expect(options({ a: true, b: false, c: null, d: [], e: "" })).toEqual(["--a", "--e", ""]);
});

test("formats lists in the chosen style", () => {
  const tags = ["a", "-b", 3, true];
  expect(options({ tags }, "comma")).toEqual(["--tags", "a,-b,3,true"]);
  expect(options({ tags }, "repeat")).toEqual(["--tags", "a", "--tags=-b", "--tags", "3", "--tags", "true"]);
  expect(options({ tags }, "json")).toEqual(["--tags", '["a","-b",3,true]']);
  expect(options({ tags: ["-a", "b"] }, "comma")).toEqual(["--tags=-a,b"]);
});

test("passes an object as JSON, whatever characters it contains", () => {
  expect(options({ filter: { a: [1, "x\0"], b: "\ud800" } })).toEqual([
    "--filter",
    String.raw`{"a":[1,"x\u0000"],"b":"\ud800"}`,
  ]);
});

test("rejects a comma inside an item of a comma-separated list, but not in the other styles", () => {
  const parameters = { tags: ["a", "b,c", { x: 1, y: 2 }] };
  expect(checkArguments(parameters, "comma").map(({ path }) => path)).toEqual(["/tags/1", "/tags/2"]);
  expect(checkArguments(parameters, "repeat")).toEqual([]);
  expect(checkArguments(parameters, "json")).toEqual([]);
});

test("rejects null inside a list unless the list is passed as JSON", () => {
  expect(checkArguments({ tags: [null] }, "repeat")[0]?.path).toBe("/tags/0");
  expect(checkArguments({ tags: [null] }, "json")).toEqual([]);
});

test.each(["", "-x", "--x", "x=y", "a b", "a\nb", "a\0", ".x", "=", "\ud800", "é\u0000", "x".repeat(201)])(
  "rejects %j as the name of an option",
  (name) => {
    expect(checkArguments({ [name]: "value" }, "comma")).toHaveLength(1);
    expect(checkArguments({ [name]: false }, "comma")).toHaveLength(1);
  },
);

test("escapes a parameter name in the JSON pointer of its fault", () => {
  expect(checkArguments({ "a/b~c": 1 }, "comma")[0]?.path).toBe("/a~1b~0c");
});

test.each([
  ["a NUL", "a\0b"],
  ["half a surrogate pair", "a\ud83d"],
  ["128 KiB", "x".repeat(131_072)],
  ["128 KiB of two-byte characters", "é".repeat(65_536)],
])("rejects an argument with %s", (_, value) => {
  expect(checkArguments({ message: value }, "comma").map(({ path }) => path)).toEqual(["/message"]);
  expect(checkArguments({ message: ["a", value] }, "repeat").map(({ path }) => path)).toEqual(["/message/1"]);
});

test("accepts an argument one byte below 128 KiB, counting the option name if it is part of the argument", () => {
  expect(checkArguments({ m: "x".repeat(131_071) }, "comma")).toEqual([]);
  expect(checkArguments({ m: `-${"x".repeat(131_066)}` }, "comma")).toEqual([]);
  expect(checkArguments({ m: `-${"x".repeat(131_067)}` }, "comma")).toHaveLength(1);
});

test("limits the total size of all arguments", () => {
  const many = Object.fromEntries(Array.from({ length: 9 }, (_, index) => [`p${index}`, "x".repeat(130_000)]));
  expect(checkArguments(many, "comma")).toEqual([expect.objectContaining({ path: "" })]);
});
