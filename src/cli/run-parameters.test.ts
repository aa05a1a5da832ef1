import { expect, test } from "vitest";
import { readParameters } from "./run-parameters.ts";

const schema = {
  type: "object",
  $defs: { port: { type: "integer" }, loop: { $ref: "#/$defs/loop" } },
  properties: {
    text: { type: "string" },
    flag: { type: "boolean" },
    whole: { type: "integer" },
    ratio: { type: "number" },
    ids: { type: "array", items: { type: "integer" } },
    tags: { type: "array", items: { type: "string" } },
    maybe: { type: ["integer", "null"] },
    either: { anyOf: [{ type: "integer" }, { type: "null" }] },
    note: { type: ["string", "null"] },
    level: { enum: [1, 2, "high", null] },
    color: { anyOf: [{ enum: ["red", "blue"] }, { type: "null" }] },
    always: { const: 7 },
    port: { $ref: "#/$defs/port" },
    ports: { type: "array", items: { $ref: "#/$defs/port" } },
    small: { allOf: [{ type: "number" }, { type: "integer" }] },
    loop: { $ref: "#/$defs/loop" },
    maybeIds: { oneOf: [{ type: "array", items: { type: "number" } }, { type: "null" }] },
    where: { type: "object" },
    free: {},
  },
};

type Options = [name: string, value: string | true][];
const read = (...extraOptions: Options) => readParameters(extraOptions, undefined, schema);

test.each<[Options, unknown]>([
  [[["text", "12"]], { text: "12" }],
  [[["flag", true]], { flag: true }],
  [[["flag", "false"]], { flag: false }],
  [[["whole", "-3"]], { whole: -3 }],
  [[["ratio", "1.5e3"]], { ratio: 1500 }],
  [[["ids", "1"]], { ids: [1] }],
  [[["ids", "1,2,3"]], { ids: [1, 2, 3] }],
  [[["ids", "[4, 5]"]], { ids: [4, 5] }],
  [
    [
      ["ids", "1"],
      ["ids", "2"],
    ],
    { ids: [1, 2] },
  ],
  [[["tags", "a,b"]], { tags: ["a,b"] }],
  [[["maybe", "5"]], { maybe: 5 }],
  [[["maybe", "null"]], { maybe: null }],
  [[["either", "5"]], { either: 5 }],
  [[["either", "null"]], { either: null }],
  [[["note", "null"]], { note: null }],
  [[["note", "5"]], { note: "5" }],
  [[["level", "1"]], { level: 1 }],
  [[["level", "high"]], { level: "high" }],
  [[["level", "null"]], { level: null }],
  [[["color", "red"]], { color: "red" }],
  [[["color", "null"]], { color: null }],
  [[["always", "7"]], { always: 7 }],
  [[["port", "80"]], { port: 80 }],
  [[["ports", "80,443"]], { ports: [80, 443] }],
  [[["small", "2"]], { small: 2 }],
  [[["loop", "x"]], { loop: "x" }],
  [[["maybeIds", "1,2"]], { maybeIds: [1, 2] }],
  [[["maybeIds", "null"]], { maybeIds: null }],
  [[["where", '{"x": [1]}']], { where: { x: [1] } }],
  [[["free", "1"]], { free: "1" }],
  [[["unknown", true]], { unknown: true }],
])("reads %j as %j", (options, expected) => expect(read(...options)).toEqual(expected));

test("uses additionalProperties to read parameters that the schema does not list", () => {
  expect(readParameters([["n", "1"]], undefined, { additionalProperties: { type: "integer" } })).toEqual({ n: 1 });
});

test.each<[Options, string]>([
  [[["whole", "1.5"]], "--whole 1.5 is not a whole number."],
  [[["whole", "x"]], "--whole x is not a whole number."],
  [[["whole", true]], "--whole needs a value."],
  [[["text", true]], "--text needs a value."],
  [[["flag", "yes"]], "--flag yes is not true or false."],
  [[["ids", "1,x"]], "--ids x is not a whole number."],
  [[["maybe", "x"]], "--maybe x is not null or a whole number."],
  [[["level", "3"]], "--level 3 is not one of 1, 2, high, null."],
  [[["where", "{"]], "--where is not valid JSON"],
  [
    [
      ["text", "a"],
      ["text", "b"],
    ],
    "--text was passed 2 times",
  ],
])("refuses %j", (options, message) =>
  expect(() => read(...options)).toThrow(
    expect.objectContaining({ code: "DROVER-USE-001", message: expect.stringContaining(message) }),
  ),
);

test("rejects a number that JavaScript cannot represent, but accepts it as a string", () => {
  const errorAbout = (field: string): unknown =>
    expect.objectContaining({ code: "DROVER-PAR-005", field, next: expect.stringContaining("as a string") });
  expect(() => read(["whole", "12345678901234567890"])).toThrow(errorAbout("--whole"));
  expect(() => read(["ratio", "1e400"])).toThrow(errorAbout("--ratio"));
  expect(() => read(["ids", "[12345678901234567890]"])).toThrow(errorAbout("--ids.0"));
  expect(() => read(["where", '{"a": 1e400}'])).toThrow(errorAbout("--where.a"));
  expect(() => readParameters([], '{"x": {"id": 12345678901234567890}}', undefined)).toThrow(
    errorAbout("--params.x.id"),
  );
  expect(read(["text", "12345678901234567890"], ["free", "1e400"])).toEqual({
    text: "12345678901234567890",
    free: "1e400",
  });
});
