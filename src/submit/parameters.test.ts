import { afterAll, expect, test } from "vitest";
import { openSchemaChecker } from "../define/json-schema/checker.ts";
import { type Agent, agentSchema } from "../model/agent.ts";
import { checkOutput, checkParameters } from "./parameters.ts";

const schemas = openSchemaChecker();
afterAll(() => schemas.stop());

const parameters_schema = {
  type: "object",
  required: ["message"],
  properties: { message: { type: "string" }, tags: { type: "array", items: { type: "string" } } },
  additionalProperties: false,
};
const agent = (changes: Partial<Agent> = {}): Agent =>
  agentSchema.parse({ name: "a", type: "procedural", command: "x", parameters_schema, ...changes });

test("accepts parameters that match", async () => {
  expect(await checkParameters(agent(), { message: "hi", tags: ["a"] }, schemas)).toEqual([]);
  expect(
    await checkParameters(agentSchema.parse({ name: "a", type: "autonomous" }), { anything: { at: ["all"] } }, schemas),
  ).toEqual([]);
});

test("reports each invalid parameter with its code and path", async () => {
  expect(await checkParameters(agent(), { mesage: 1, tags: ["a", 2] }, schemas)).toEqual([
    { code: "DROVER-PAR-001", path: "/message", message: "is required" },
    { code: "DROVER-PAR-001", path: "/mesage", message: "is not a known property. Did you mean message?" },
    { code: "DROVER-PAR-001", path: "/tags/1", message: "must be string" },
  ]);
});

test("refuses values that a command line cannot contain, whatever the schema allows", async () => {
  expect(await checkParameters(agent(), { message: "a\0b", tags: ["x,y"] }, schemas)).toMatchObject([
    { code: "DROVER-PAR-002", path: "/message" },
    { code: "DROVER-PAR-002", path: "/tags/0" },
  ]);
  expect(await checkParameters(agent({ list_style: "repeat" }), { message: "x", tags: ["x,y"] }, schemas)).toEqual([]);
});

test("does not apply command line rules to an autonomous agent", async () => {
  const thinking = agentSchema.parse({ name: "a", type: "autonomous" });
  expect(await checkParameters(thinking, { "a b": "x\0", tags: ["x,y"] }, schemas)).toEqual([]);
});

test("skips the schema if the script validates, but still applies command line rules", async () => {
  const executorValidated = agent({ parameters_validation: "executor" });
  expect(await checkParameters(executorValidated, { unknown: "param" }, schemas)).toEqual([]);
  expect(await checkParameters(executorValidated, { "--x": 1 }, schemas)).toMatchObject([{ code: "DROVER-PAR-002" }]);
});

/** Parses the parameters from JSON, as from a request body. */
const checkUnknown = (parameters: unknown) => checkParameters(agent(), parameters as Record<string, unknown>, schemas);

test("refuses special keys, oversized values and deep nesting first", async () => {
  expect(await checkUnknown(JSON.parse('{"message":"x","__proto__":{"a":1}}'))).toMatchObject([
    { code: "DROVER-PAR-003", path: "/__proto__" },
  ]);
  expect(await checkUnknown({ message: [{ constructor: 1 }] })).toMatchObject([
    { code: "DROVER-PAR-003", path: "/message/0/constructor" },
  ]);
  expect(await checkUnknown({ message: [Infinity] })).toMatchObject([{ code: "DROVER-PAR-003", path: "/message/0" }]);
  expect(await checkUnknown({ message: "x".repeat(1024 * 1024) })).toMatchObject([
    { code: "DROVER-PAR-003", path: "" },
  ]);
  expect(await checkUnknown(JSON.parse(`{"message":${"[".repeat(65)}${"]".repeat(65)}}`))).toMatchObject([
    { code: "DROVER-PAR-003" },
  ]);
});

test("refuses all parameters if the schema cannot be checked in time or at all", async () => {
  const impatientSchemas = openSchemaChecker({ checkMs: 50 });
  try {
    const slow = agent({ parameters_schema: { properties: { message: { pattern: "^(a+)+$" } } } });
    expect(await checkParameters(slow, { message: `${"a".repeat(40)}!` }, impatientSchemas)).toMatchObject([
      { code: "DROVER-PAR-004" },
    ]);
    const broken = agent({ parameters_schema: { type: "strng" } });
    expect(await checkParameters(broken, { message: "x" }, impatientSchemas)).toMatchObject([
      { code: "DROVER-PAR-001" },
    ]);
  } finally {
    await impatientSchemas.stop();
  }
});

test("checks a run's output the same way, but allows any key", async () => {
  const schema = { type: "object", required: ["message"], properties: { message: { type: "string" } } };
  expect(await checkOutput(schema, { message: "x", constructor: 1 }, schemas)).toEqual([]);
  expect(await checkOutput(schema, { message: 3 }, schemas)).toEqual([
    { code: "DROVER-PAR-001", path: "/message", message: "must be string" },
  ]);
  expect(await checkOutput(schema, null, schemas)).toHaveLength(1);
});
