import { expect, test } from "vitest";
import { checkArguments, toArguments } from "./to-arguments.ts";

const options = (parameters: Record<string, unknown>, style: "comma" | "repeat" | "json" = "comma") => {
  const { arguments: words, faults } = toArguments(parameters, style);
  expect(faults).toEqual([]);
  return words;
};

test("texts and numbers follow their name", () => {
  expect(options({ url: "https://example.com", depth: 2 })).toEqual(["--url", "https://example.com", "--depth", "2"]);
});

test("a value that begins with a dash is tied to its name", () => {
  expect(options({ message: "--force", n: -5, dash: "-" })).toEqual(["--message=--force", "--n=-5", "--dash=-"]);
});

test("true is a flag; false, null and an empty list are left out; an empty text is not", () => {
  expect(options({ a: true, b: false, c: null, d: [], e: "" })).toEqual(["--a", "--e", ""]);
});

test("lists follow their style", () => {
  const tags = ["a", "-b", 3, true];
  expect(options({ tags }, "comma")).toEqual(["--tags", "a,-b,3,true"]);
  expect(options({ tags }, "repeat")).toEqual(["--tags", "a", "--tags=-b", "--tags", "3", "--tags", "true"]);
  expect(options({ tags }, "json")).toEqual(["--tags", '["a","-b",3,true]']);
  expect(options({ tags: ["-a", "b"] }, "comma")).toEqual(["--tags=-a,b"]);
});

test("an object is JSON, so that nothing in it needs a rule", () => {
  expect(options({ filter: { a: [1, "x\0"], b: "\ud800" } })).toEqual([
    "--filter",
    String.raw`{"a":[1,"x\u0000"],"b":"\ud800"}`,
  ]);
});

test("a comma inside an item of a comma list is a fault at that item, and none in the other styles", () => {
  const parameters = { tags: ["a", "b,c", { x: 1, y: 2 }] };
  expect(checkArguments(parameters, "comma").map(({ path }) => path)).toEqual(["/tags/1", "/tags/2"]);
  expect(checkArguments(parameters, "repeat")).toEqual([]);
  expect(checkArguments(parameters, "json")).toEqual([]);
});

test("null inside a list is a fault unless the list is JSON", () => {
  expect(checkArguments({ tags: [null] }, "repeat")[0]?.path).toBe("/tags/0");
  expect(checkArguments({ tags: [null] }, "json")).toEqual([]);
});

test.each(["", "-x", "--x", "x=y", "a b", "a\nb", "a\0", ".x", "=", "\ud800", "é\u0000", "x".repeat(201)])(
  "%j cannot be the name of an option",
  (name) => {
    expect(checkArguments({ [name]: "value" }, "comma")).toHaveLength(1);
    expect(checkArguments({ [name]: false }, "comma")).toHaveLength(1);
  },
);

test("a fault in a name is pointed to as JSON pointers are written", () => {
  expect(checkArguments({ "a/b~c": 1 }, "comma")[0]?.path).toBe("/a~1b~0c");
});

test.each([
  ["a NUL", "a\0b"],
  ["half a surrogate pair", "a\ud83d"],
  ["128 KiB", "x".repeat(131_072)],
  ["128 KiB of two-byte characters", "é".repeat(65_536)],
])("%s cannot be handed over", (_, value) => {
  expect(checkArguments({ message: value }, "comma").map(({ path }) => path)).toEqual(["/message"]);
  expect(checkArguments({ message: ["a", value] }, "repeat").map(({ path }) => path)).toEqual(["/message/1"]);
});

test("one byte less than 128 KiB can, also where the name is part of the argument", () => {
  expect(checkArguments({ m: "x".repeat(131_071) }, "comma")).toEqual([]);
  expect(checkArguments({ m: `-${"x".repeat(131_066)}` }, "comma")).toEqual([]);
  expect(checkArguments({ m: `-${"x".repeat(131_067)}` }, "comma")).toHaveLength(1);
});

test("all arguments together have a limit too", () => {
  const many = Object.fromEntries(Array.from({ length: 9 }, (_, at) => [`p${at}`, "x".repeat(130_000)]));
  expect(checkArguments(many, "comma")).toEqual([expect.objectContaining({ path: "" })]);
});
