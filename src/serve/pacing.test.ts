import { setImmediate } from "node:timers/promises";
import { expect, test } from "vitest";
import { createPacing } from "./pacing.ts";

test("spreads a caller's burst over many rounds, in order, while other callers start at once", async () => {
  const pace = createPacing(4);
  const started: number[] = [];
  const flood = Array.from({ length: 20 }, async (_, index) => {
    await pace("many", 1);
    started.push(index);
  });
  await Promise.resolve();
  expect(started).toEqual([0, 1, 2, 3]);
  expect(pace("other", 4)).toBeUndefined();
  await setImmediate();
  expect(started.length).toBeLessThan(20);
  expect(pace("other", 1)).toBeUndefined();
  await Promise.all(flood);
  expect(started).toEqual(Array.from({ length: 20 }, (_, index) => index));
});

test("starts a request that is heavier than a round", async () => {
  const pace = createPacing(4);
  await Promise.all([pace("a", 9), pace("a", 9)]);
});
