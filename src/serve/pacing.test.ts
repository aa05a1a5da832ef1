import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { createPacing } from "./pacing.ts";

test("a flood is begun in many rounds, in its order, and others begin at once meanwhile", async () => {
  const pace = createPacing(4);
  const begun: number[] = [];
  const flood = Array.from({ length: 20 }, async (_, at) => {
    await pace("many", 1);
    begun.push(at);
  });
  await Promise.resolve();
  expect(begun).toEqual([0, 1, 2, 3]);
  expect(pace("other", 4)).toBeUndefined();
  await setImmediate();
  expect(begun.length).toBeLessThan(20);
  expect(pace("other", 1)).toBeUndefined();
  await Promise.all(flood);
  expect(begun).toEqual(Array.from({ length: 20 }, (_, at) => at));
});

test("one that weighs more than a round holds begins too", async () => {
  const pace = createPacing(4);
  await Promise.all([pace("a", 9), pace("a", 9)]);
});
