import { afterEach, expect, test } from "vitest";
import { createAllowance } from "./allowance.ts";
import { openSchemaChecker, type SchemaChecker } from "./checker.ts";
import { createFairQueue } from "./fair-queue.ts";

const limits = { maxBytes: 1024 * 1024, maxDepth: 64, rejectForbiddenKeys: true };
const openCheckers: SchemaChecker[] = [];
const openChecker = (...args: Parameters<typeof openSchemaChecker>) => {
  const checker = openSchemaChecker(...args);
  openCheckers.push(checker);
  return checker;
};
afterEach(() => Promise.all(openCheckers.splice(0).map((checker) => checker.stop())));

const slowSchema = { type: "object", properties: { x: { type: "string", pattern: "^(a+)+$" } } };
const otherSlowSchema = { type: "object", properties: { x: { type: "string", pattern: "^(b+)+$" } } };
const slowValue = { x: `${"a".repeat(40)}!` };

test("limits the queue of one caller, and answers another caller before that queue is empty", async () => {
  const checker = openChecker({ checkMs: 30 });
  const order: string[] = [];
  const slowAnswers = Array.from({ length: 40 }, () =>
    checker.check(slowSchema, slowValue, limits, { subject: "slow" }).then((checked) => {
      if (checked.reason === "incomplete") order.push("slow");
      return checked;
    }),
  );
  const answer = checker.check(otherSlowSchema, { x: "bb" }, limits, { subject: "other" }).then((checked) => {
    order.push("other");
    return checked;
  });
  expect(await answer).toEqual({ faults: [] });
  const answers = await Promise.all(slowAnswers);
  expect(answers.filter(({ reason }) => reason === "busy")).toHaveLength(32);
  expect(answers.filter(({ reason }) => reason === "incomplete")).toHaveLength(8);
  expect(answers.find(({ reason }) => reason === "busy")?.retryAfterSeconds).toBeGreaterThan(0);
  expect(order.indexOf("other")).toBeLessThan(3);
});

const createPatternSchema = (pattern: string) => ({ properties: { x: { type: "string", pattern } } });
const repeat = (count: number, each: (index: number) => [string, unknown]) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => each(index)));
const doublingReferences = {
  $defs: repeat(60, (index) => [
    `d${index}`,
    index === 59 ? { const: 0 } : { anyOf: [{ $ref: `#/$defs/d${index + 1}` }, { $ref: `#/$defs/d${index + 1}` }] },
  ]),
  properties: { x: { $ref: "#/$defs/d0" } },
};
const longText = `${"a".repeat(40)}!`;
const slowChecks: [description: string, schema: object, value: Record<string, unknown>][] = [
  ["a repetition of repetitions", createPatternSchema("^(a+)+$"), { x: longText }],
  ["equal alternatives", createPatternSchema("^(a|a)*$"), { x: longText }],
  ["overlapping alternatives", createPatternSchema("^(a|aa)+$"), { x: longText }],
  ["forty optional parts", createPatternSchema(`^${"a?".repeat(40)}${"a".repeat(40)}$`), { x: "a".repeat(39) }],
  ["wildcards in a row", createPatternSchema(`^${".*".repeat(12)}x$`), { x: "a".repeat(200) }],
  ["a backreference", createPatternSchema("^(a*)*\\1b$"), { x: longText }],
  ["a lookahead", createPatternSchema("^(?=(a+)+$)a"), { x: longText }],
  ["a character class in a repeated group", createPatternSchema("^([a-z]+)*[A-Z]$"), { x: longText }],
  ["a pattern for property names", { patternProperties: { "^(a+)+$": {} } }, { [longText]: 1 }],
  ["propertyNames with a pattern", { propertyNames: { pattern: "^(a+)+$" } }, { [longText]: 1 }],
  [
    "a slow pattern checked against each item of a list",
    { properties: { x: { items: { pattern: "^(a+)+$" } } } },
    { x: [longText, longText, longText] },
  ],
  ["references that double at each level", doublingReferences, { x: 1 }],
];
test.each(slowChecks)("%s delays no other caller", async (_, schema, value) => {
  const checker = openChecker({ checkMs: 50, allowanceMs: 50 });
  const slowAnswers = Array.from({ length: 12 }, () => checker.check(schema, value, limits, { subject: "slow" }));
  expect(await checker.check(otherSlowSchema, { x: "bb" }, limits, { subject: "other" })).toEqual({ faults: [] });
  const answers = await Promise.all(slowAnswers);
  expect(answers.filter(({ faults }) => faults.length === 0)).toEqual([]);
  expect(answers.filter(({ reason }) => reason === "busy").length).toBeGreaterThanOrEqual(4);
});

test("a caller that uses up the checker's time is refused for a while, and other callers are not", async () => {
  const checker = openChecker({ checkMs: 50, allowanceMs: 100 });
  let refusal = null;
  for (let index = 0; index < 10 && refusal === null; index += 1) {
    const checked = await checker.check(slowSchema, slowValue, limits, { subject: "slow" });
    if (checked.reason === "busy") refusal = checked;
  }
  expect(refusal).toMatchObject({ reason: "busy", retryAfterSeconds: expect.any(Number) });
  expect(await checker.checkSchema({ type: "object" }, { subject: "slow" })).toMatchObject({ reason: "busy" });
  expect(await checker.check(slowSchema, { x: "aa" }, limits, { subject: "other" })).toEqual({ faults: [] });
  // Drover's own checks are not limited by an allowance.
  expect(await checker.check(slowSchema, { x: "aa" }, limits)).toEqual({ faults: [] });
});

test.each(slowChecks)(
  "cancels checks of %s when their caller disconnects, pending or running",
  async (_, schema, value) => {
    const checker = openChecker({ checkMs: 600_000 });
    const controller = new AbortController();
    const cancelledChecks = [1, 2, 3].map(() =>
      checker.check(schema, value, limits, { subject: "gone", signal: controller.signal }),
    );
    const otherCheck = checker.check(otherSlowSchema, { x: "b" }, limits, { subject: "other" });
    controller.abort();
    expect((await Promise.all(cancelledChecks)).map(({ reason }) => reason)).toEqual([
      "incomplete",
      "incomplete",
      "incomplete",
    ]);
    expect(await otherCheck).toEqual({ faults: [] });
    const later = await checker.check(schema, value, limits, { subject: "gone", signal: controller.signal });
    expect(later.reason).toBe("incomplete");
  },
);

test("serves the callers of a queue in turn", () => {
  const queue = createFairQueue<string>();
  for (const item of ["a1", "a2", "a3", "b1", "c1", "b2"]) queue.push(item[0]!, item);
  expect(queue.remove("a", "a2")).toBe(true);
  expect(queue.remove("a", "a2")).toBe(false);
  expect([queue.count("a"), queue.count("b"), queue.size]).toEqual([2, 2, 5]);
  const order = [];
  for (let next = queue.shift(); next; next = queue.shift()) order.push(next);
  expect(order).toEqual(["a1", "b1", "c1", "a3", "b2"]);
  queue.push("a", "a4");
  expect([queue.removeAll("a"), queue.removeAll("a"), queue.size]).toEqual([["a4"], [], 0]);
});

test("refills an allowance over time and forgets slow callers", () => {
  let now = 0;
  const allowance = createAllowance(2000, () => now);
  allowance.spend("a", 2500);
  allowance.markSlow("a");
  expect([allowance.secondsToWait("a"), allowance.secondsToWait("b"), allowance.isSlow("a")]).toEqual([5, 0, true]);
  now = 5000;
  expect(allowance.secondsToWait("a")).toBe(0);
  allowance.spend("a", 1000);
  expect(allowance.secondsToWait("a")).toBe(10);
  now = 3_600_000;
  expect([allowance.secondsToWait("a"), allowance.isSlow("a")]).toEqual([0, false]);
});
