import { expect, test } from "vitest";
import { createRedactor } from "./redactor.ts";

const redactor = createRedactor({ variables: { API_TOKEN: "s3cr3t-value" } });

test("redacts strings and keys at any depth", () => {
  const value = { a: ["x", { b: "is s3cr3t-value" }], "s3cr3t-value": null, "=s3cr3t-value": 1 };
  expect(redactor.value(value)).toEqual({
    a: ["x", { b: "is [redacted:API_TOKEN]" }],
    "[redacted:API_TOKEN]": null,
    "=[redacted:API_TOKEN]": 1,
  });
});

test("keeps keys distinct if they get the same mark", () => {
  const hex = Buffer.from("s3cr3t-value").toString("hex");
  expect(redactor.value({ "s3cr3t-value": 1, [hex]: 2 })).toEqual({
    "[redacted:API_TOKEN]": 1,
    "[redacted:API_TOKEN]#2": 2,
  });
});

test("returns the same object if there are no secrets", () => {
  const value = { n: 1, list: [true, null, "text"], nested: { at: new Date(0) }, tokens: "many" };
  expect(redactor.value(value)).toBe(value);
});

test("redacts the values of sensitive keys and flags", () => {
  expect(
    redactor.value({
      password: "hunter22",
      token: "string",
      max_tokens: "4096k",
      args: ["--api-key", "abc123def", "-v", "abc123def"],
    }),
  ).toEqual({
    password: "[redacted:password]",
    token: "string",
    max_tokens: "4096k",
    args: ["--api-key", "[redacted:api-key]", "-v", "abc123def"],
  });
});

test("redacts the items of a list under a sensitive key", () => {
  const headers = { "x-api-key": ["abc123def", "plain"], cookie: ["abc123def"] };
  expect(redactor.value({ headers, password: [["hunter22", 7, null], { id: "abc123def" }] })).toEqual({
    headers: { "x-api-key": ["[redacted:api-key]", "plain"], cookie: ["abc123def"] },
    password: [["[redacted:password]", 7, null], { id: "abc123def" }],
  });
  const once = redactor.value({ token: ["abc123def"] });
  expect(redactor.value(once)).toBe(once);
});

test("changes nothing when data is redacted twice", () => {
  const once = redactor.value({ password: "hunter22", args: ["--token", "s3cr3t-value"] });
  expect(redactor.value(once)).toBe(once);
  const marked = { secret: "[redacted:KEY_1]" };
  expect(redactor.value(marked)).toBe(marked);
});

test("keeps a key named __proto__", () => {
  const value: unknown = JSON.parse('{"__proto__": {"x": "s3cr3t-value"}}');
  expect(JSON.stringify(redactor.value(value))).toBe('{"__proto__":{"x":"[redacted:API_TOKEN]"}}');
});

test("replaces circular and very deep data with a mark", () => {
  const circle: Record<string, unknown> = { name: "s3cr3t-value" };
  circle["self"] = circle;
  expect(redactor.value(circle)).toEqual({ name: "[redacted:API_TOKEN]", self: "[redacted:circular]" });
  let deep: unknown = "s3cr3t-value";
  for (let i = 0; i < 10_000; i++) deep = [deep];
  const redacted = JSON.stringify(redactor.value(deep));
  expect(redacted).toContain("[redacted:too-deep]");
  expect(redacted).not.toContain("s3cr3t-value");
});
