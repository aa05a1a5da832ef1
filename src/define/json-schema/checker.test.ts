import { readdirSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { afterEach, expect, test } from "vitest";
import { openSchemaChecker, type SchemaChecker } from "./checker.ts";

const limits = { maxBytes: 1024 * 1024, maxDepth: 64, rejectForbiddenKeys: true };
const openCheckers: SchemaChecker[] = [];
const openChecker = (...args: Parameters<typeof openSchemaChecker>) => {
  const checker = openSchemaChecker(...args);
  openCheckers.push(checker);
  return checker;
};
afterEach(() => Promise.all(openCheckers.splice(0).map((checker) => checker.stop())));

/**
 * Counts how many times the event loop of this thread turned during the work: only once or twice if the work blocked it.
 */
async function countTurnsDuring<T>(work: () => Promise<T>): Promise<{ result: T; turns: number }> {
  let turns = 0;
  const tick = setInterval(() => turns++, 2);
  try {
    const result = await work();
    return { result, turns };
  } finally {
    clearInterval(tick);
  }
}

const evil = { type: "object", properties: { x: { type: "string", pattern: "^(a+)+$" } } };
const attack = { x: `${"a".repeat(40)}!` };

test("terminates an endless pattern without blocking the event loop", async () => {
  const checker = openChecker({ checkMs: 250 });
  await checker.check(evil, { x: "aaa" }, limits); // The worker has started and compiled the schema.
  const { result, turns } = await countTurnsDuring(() => checker.check(evil, attack, limits));
  expect(result.reason).toBe("incomplete");
  expect(turns).toBeGreaterThan(10);
  const shorter = await countTurnsDuring(() => checker.check(evil, { x: `${"a".repeat(28)}!` }, limits));
  expect(shorter.result.faults).toHaveLength(1); // Terminated or finished, depending on the machine.
  expect(shorter.turns).toBeGreaterThan(10);
});

test("answers the next check normally after one was terminated", async () => {
  const checker = openChecker({ checkMs: 500 });
  const answers = await Promise.all([
    checker.check(evil, attack, limits),
    checker.check(evil, { x: "aaa" }, limits),
    checker.check(evil, attack, limits),
    checker.check(evil, { x: "b" }, limits),
  ]);
  expect(answers.map(({ reason, faults }) => reason ?? faults.length)).toEqual(["incomplete", 0, "incomplete", 1]);
});

test.each([
  ["references that double at each step", createDoublingReferences(), 1],
  [
    "a comparison of all pairs",
    { type: "array", uniqueItems: true },
    Array.from({ length: 30_000 }, (_, x) => ({ x })),
  ],
])("%s cannot hold up the event loop", async (_, schema, value) => {
  const checker = openChecker({ checkMs: 200 });
  await checker.check({ type: "object", properties: { x: { format: "date" } } }, {}, limits);
  const { result, turns } = await countTurnsDuring(() => checker.check(schema, value, limits));
  expect(result.reason).toBe("incomplete");
  expect(turns).toBeGreaterThan(10);
});

function createDoublingReferences(): object {
  const $defs: Record<string, unknown> = { d40: { type: "number" } };
  for (let index = 0; index < 40; index++)
    $defs[`d${index}`] = { allOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] };
  return { $defs, $ref: "#/$defs/d0" };
}

test("reports a schema that refers to itself endlessly", async () => {
  const checker = openChecker();
  const { faults } = await checker.check(
    { $defs: { a: { $ref: "#/$defs/b" }, b: { $ref: "#/$defs/a" } }, $ref: "#/$defs/a" },
    1,
    limits,
  );
  expect(faults).toHaveLength(1);
});

test("refuses schemas over the limits before compiling them", async () => {
  const checker = openChecker();
  const getReason = async (schema: object) => (await checker.check(schema, {}, limits)).reason;
  expect(await getReason({ $ref: "http://127.0.0.1:1/schema.json" })).toBe("refused");
  expect(await getReason({ $ref: "other.json#/x" })).toBe("refused");
  expect(await getReason({ properties: { x: { $id: "http://x/y" } } })).toBe("refused");
  expect(await getReason({ description: "x".repeat(65_536) })).toBe("refused");
  expect(await getReason({ enum: Array.from({ length: 6000 }, (_, index) => index) })).toBe("refused");
  expect(await getReason(JSON.parse('{"properties":{"__proto__":{"type":"string"}}}') as object)).toBe("refused");
  let deep: object = {};
  for (let index = 0; index < 10_000; index++) deep = { not: deep };
  expect(await getReason(deep)).toBe("refused");
});

test("refuses values over the limits", async () => {
  const checker = openChecker();
  const getReason = async (value: unknown) => (await checker.check({}, value, limits)).reason;
  expect(await getReason({ x: "x".repeat(1024 * 1024) })).toBe("refused");
  let deep: unknown = 1;
  for (let index = 0; index < 100_000; index++) deep = [deep];
  expect(await getReason(deep)).toBe("refused");
  expect(await getReason(JSON.parse('{"a":{"__proto__":{}}}'))).toBe("refused");
  expect(await getReason({ a: { constructor: 1 } })).toBe("refused");
  expect((await checker.check({}, { constructor: 1 }, { ...limits, rejectForbiddenKeys: false })).faults).toEqual([]);
});

test("locates faults, on the main thread and in the worker", async () => {
  const checker = openChecker();
  const plain = {
    type: "object",
    required: ["message"],
    properties: {
      message: { type: "string" },
      list: { type: "array", items: { type: "integer" } },
      "a/b": { enum: ["x", 2] },
    },
    additionalProperties: false,
  };
  const value = { mesage: "x", list: [1, "2"], "a/b": 3 };
  const expected = [
    { path: "/message", message: "is required" },
    { path: "/mesage", message: "is not a known property. Did you mean message?" },
    { path: "/list/1", message: "must be integer" },
    { path: "/a~1b", message: 'must be one of "x", 2' },
  ];
  const inPlace = await checker.check(plain, value, limits);
  const inWorker = await checker.check({ ...plain, patternProperties: { "^never$": {} } }, value, limits);
  expect(inPlace.faults).toEqual(expected);
  expect(inWorker.faults).toEqual(expected);
});

test("supports formats, draft-07, $id and custom x- keywords", async () => {
  const checker = openChecker();
  const day = {
    $id: "day.json",
    $schema: "https://json-schema.org/draft/2020-12/schema",
    "x-order": 3,
    format: "date",
  };
  expect((await checker.check(day, "2025-01-31", limits)).faults).toEqual([]);
  expect((await checker.check({ ...day }, "2025-02-31", limits)).faults).toHaveLength(1);
  const old = {
    $schema: "http://json-schema.org/draft-07/schema#",
    definitions: { n: { type: "number" } },
    items: [{ $ref: "#/definitions/n" }],
  };
  expect((await checker.checkSchema(old)).faults).toEqual([]);
  expect((await checker.check(old, ["x"], limits)).faults).toMatchObject([{ path: "/0" }]);
});

test("locates the mistake in an invalid schema", async () => {
  const checker = openChecker();
  expect((await checker.checkSchema({ properties: { x: { type: "strng" } } })).faults[0]).toMatchObject({
    path: "/properties/x/type",
  });
  expect((await checker.checkSchema({ requried: ["x"] })).faults[0]?.message).toContain("requried");
  expect((await checker.check({ type: "strng" }, {}, limits)).faults).toHaveLength(1);
  expect((await checker.checkSchema({ type: "object" })).faults).toEqual([]);
});

const countThreads = (): number => readdirSync("/proc/self/task").length;

test("terminates an idle worker and starts a new one when needed", async () => {
  const checker = openChecker({ idleMs: 200 });
  expect((await checker.check(evil, { x: "a" }, limits)).faults).toEqual([]);
  const busy = countThreads();
  await expect.poll(countThreads).toBeLessThan(busy);
  expect((await checker.check(evil, { x: "b" }, limits)).faults).toHaveLength(1);
});

test("answers pending checks on stop, which is idempotent", async () => {
  const checker = openChecker({ checkMs: 60_000 });
  const waiting = [checker.check(evil, attack, limits), checker.check(evil, { x: "a" }, limits)];
  await Promise.all([checker.stop(), checker.stop()]);
  expect((await Promise.all(waiting)).map(({ reason }) => reason)).toEqual(["incomplete", "incomplete"]);
  expect((await checker.check(evil, {}, limits)).reason).toBe("incomplete");
});

test.runIf(process.platform === "linux")("does not time out a schema on a busy machine", async () => {
  const checker = openChecker({ compileMs: 400, checkMs: 150 });
  const busy = Array.from({ length: 8 }, () => new Worker("for (;;);", { eval: true }));
  try {
    const checks = Array.from({ length: 5 }, () => checker.check(evil, { x: "aaa" }, limits));
    expect(await Promise.all(checks)).toEqual(checks.map(() => ({ faults: [] })));
    expect((await checker.check(evil, attack, limits)).reason).toBe("incomplete");
  } finally {
    await Promise.all(busy.map((item) => item.terminate()));
  }
});
