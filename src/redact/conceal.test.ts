import { describe, expect, it } from "vitest";
import { conceal } from "./conceal.ts";
import { createRedactor } from "./redactor.ts";

const redactor = createRedactor({ variables: { DEPLOY_TOKEN: "canary-6f1d20b7e4" } });
const secret = "correct horse battery";
const passwordSchema = { type: "string", format: "password" };
const concealInput = (schema: object | undefined, parameters: Record<string, unknown>, prompt: string | null = null) =>
  conceal(schema, { parameters, prompt }, redactor);

describe.each<[string, object, Record<string, unknown>]>([
  ["by its format", { properties: { x: passwordSchema } }, { x: secret }],
  ["as write-only", { properties: { x: { writeOnly: true } } }, { x: secret }],
  ["in an object", { properties: { o: { properties: { x: passwordSchema } } } }, { o: { x: secret, y: "shown" } }],
  ["in a list", { properties: { l: { items: passwordSchema } } }, { l: [secret] }],
  ["in a tuple", { properties: { l: { prefixItems: [{}, passwordSchema] } } }, { l: ["shown", secret] }],
  ["in a tuple of draft-07", { properties: { l: { items: [{}, passwordSchema] } } }, { l: ["shown", secret] }],
  ["by a reference", { $defs: { s: passwordSchema }, properties: { x: { $ref: "#/$defs/s" } } }, { x: secret }],
  [
    "by an anchor",
    { $defs: { s: { ...passwordSchema, $anchor: "s" } }, properties: { x: { $ref: "#s" } } },
    { x: secret },
  ],
  [
    "by one of several schemas in anyOf",
    { properties: { x: { anyOf: [{ type: "null" }, passwordSchema] } } },
    { x: secret },
  ],
  ["under a condition", { if: {}, else: { properties: { x: passwordSchema } } }, { x: secret }],
  ["by allOf at the top", { allOf: [{ properties: { x: passwordSchema } }] }, { x: secret }],
  ["by additionalProperties", { additionalProperties: passwordSchema }, { x: secret }],
  ["by a pattern", { patternProperties: { "^x$": passwordSchema } }, { x: secret }],
  ["as a whole object", { properties: { o: { writeOnly: true } } }, { o: { a: [secret], b: 1 } }],
  [
    "in a schema that refers to itself",
    { properties: { x: passwordSchema, next: { $ref: "#" } } },
    { next: { next: { x: secret } } },
  ],
])("a parameter marked %s", (_, schema, parameters) => {
  it("is concealed, and becomes a secret of the run", () => {
    const concealed = concealInput(schema, parameters);
    expect(JSON.stringify(concealed?.parameters)).not.toContain(secret);
    expect(JSON.stringify(concealed?.parameters)).toContain("[redacted:");
    expect(concealed?.secrets.map(({ value }) => value)).toContain(secret);
  });
});

it("replaces marked numbers and other values with the parameter's name", () => {
  const schema = { properties: { pin: { type: "integer", writeOnly: true }, on: { writeOnly: true } } };
  expect(concealInput(schema, { pin: 123456, on: true, none: null })).toEqual({
    parameters: { pin: "[redacted:pin]", on: "[redacted:on]", none: null },
    prompt: null,
    secrets: [{ name: "pin", value: "123456" }],
  });
});

it.each([
  ["a token by its shape", { note: `ghp_${"a1B2".repeat(9)}` }],
  ["a value of a variable", { note: "canary-6f1d20b7e4" }],
  ["a value of a sensitive name", { password: "hunter2!" }],
  ["credentials in a URL", { url: "postgres://app:s3cr3t-word@db/app" }],
])("conceals %s without any schema", (_, parameters) => {
  const concealed = concealInput(undefined, parameters);
  const [value] = Object.values(parameters);
  expect(JSON.stringify(concealed?.parameters)).toContain("[redacted:");
  expect(JSON.stringify(concealed?.parameters)).not.toContain(value);
});

it("conceals secrets in a prompt and keeps the text around them", () => {
  const concealed = concealInput(undefined, {}, "push with canary-6f1d20b7e4 please");
  expect(concealed).toMatchObject({ parameters: {}, prompt: "push with [redacted:DEPLOY_TOKEN] please" });
});

it("returns null for ordinary parameters", () => {
  const schema = { properties: { mail: { type: "string", format: "email" }, x: { writeOnly: false } } };
  expect(concealInput(schema, { mail: "a@example.com", x: "plain", n: 7 }, "do it")).toBeNull();
  expect(concealInput({ properties: { x: passwordSchema } }, { y: "other" })).toBeNull();
});

it("treats everything as secret if a schema expands without end", () => {
  const $defs: Record<string, object> = { s0: passwordSchema };
  for (let no = 1; no < 400; no += 1)
    $defs[`s${no}`] = {
      anyOf: Array.from({ length: 10 }, (_, index) => ({ $ref: `#/$defs/s${Math.max(0, no - index - 1)}` })),
    };
  delete $defs["s0"];
  const schema = { $defs, additionalProperties: { $ref: "#/$defs/s399" }, properties: { none: passwordSchema } };
  const many = Object.fromEntries(Array.from({ length: 3000 }, (_, no) => [`key${no}`, `value ${no}`]));
  expect(JSON.stringify(concealInput(schema, many)?.parameters)).not.toContain("value 2999");
});
