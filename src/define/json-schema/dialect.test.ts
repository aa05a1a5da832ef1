import { expect, test } from "vitest";
import { checkSchemaLimits } from "./limits.ts";

const formatFaults = (schema: object) => checkSchemaLimits(schema).map(({ path, message }) => `${path} ${message}`);

test.each([
  "https://json-schema.org/draft/2020-12/schema",
  "https://json-schema.org/draft/2020-12/schema#",
  "http://json-schema.org/draft-07/schema#",
  "http://json-schema.org/draft-07/schema",
  "https://json-schema.org/draft-07/schema#",
  "http://json-schema.org/draft-06/schema#",
])("accepts the dialect %s", ($schema) => {
  expect(formatFaults({ $schema, type: "object" })).toEqual([]);
});

test.each([
  "https://evil.example/schema",
  "https://json-schema.org.evil.example/draft/2020-12/schema",
  "https://evil.example/json-schema.org/draft-07/schema#",
  "https://json-schema.org/draft/2019-09/schema",
  "http://json-schema.org/draft-04/schema#",
  "http://json-schema.org/draft-03/schema#",
  "http://json-schema.org/schema#",
  "https://json-schema.org/draft/2020-12/schema#/$defs/x",
  "https://json-schema.org/draft/2020-12/schema?x=https://evil.example",
  "https://user@json-schema.org/draft/2020-12/schema",
  "//json-schema.org/draft/2020-12/schema",
  "file:///etc/passwd",
  "urn:example:draft-07",
  "draft-07",
  "my own draft-07/schema#",
  " https://json-schema.org/draft/2020-12/schema",
  "https://json-schema.org/draft/2020-12/schema\n",
  "",
])("refuses the unsupported dialect %j and names it", ($schema) => {
  const [fault] = formatFaults({ $schema, type: "object" });
  expect(fault).toMatch(/^\/\$schema is "/);
  expect(fault).toContain(JSON.stringify($schema));
});

test.each([1, null, {}, ["https://json-schema.org/draft/2020-12/schema"], true])(
  "refuses %j as a dialect",
  ($schema) => {
    expect(formatFaults({ $schema, type: "object" })).not.toEqual([]);
  },
);

test.each([
  ["$id", "https://evil.example/x.json"],
  ["$id", "http://127.0.0.1:8080/x.json"],
  ["$id", "//evil.example/x.json"],
  ["$id", "\\\\evil.example\\x.json"],
  ["$id", "file:///etc/passwd"],
  ["$id", " https://evil.example/x"],
  ["$ref", "https://evil.example/x.json"],
  ["$ref", "//evil.example/x.json"],
  ["$ref", "x.json"],
  ["$ref", "https://json-schema.org/draft/2020-12/schema"],
  ["$ref", ""],
  ["$ref", " #/x"],
  ["$dynamicRef", "https://evil.example/x#meta"],
  ["$recursiveRef", "https://evil.example/x"],
] as const)("refuses %s %j, at the top of a schema and in a subschema", (key, value) => {
  expect(formatFaults({ type: "object", [key]: value })).toHaveLength(1);
  expect(formatFaults({ properties: { a: { [key]: value } } })).toHaveLength(1);
});

test("refuses a dialect in a subschema, where it would be ignored", () => {
  const $schema = "https://json-schema.org/draft/2020-12/schema";
  expect(formatFaults({ properties: { a: { $schema, type: "string" } } })).toEqual([
    "/properties/a/$schema is only allowed at the top of a schema",
  ]);
});

test("accepts a schema $id that names no host", () => {
  for (const $id of ["day.json", "urn:example:day", "#day", "/day"]) expect(formatFaults({ $id })).toEqual([]);
  expect(formatFaults({ properties: { $schema: { type: "string" }, $id: { type: "string" } } })).toEqual([]);
});
