import { expect, test } from "vitest";
import { acquireStartSlot } from "./start-slot.ts";

test("each starts when the one before has begun, and other folders do not wait", async () => {
  const order: string[] = [];
  const first = await acquireStartSlot("/one");
  const second = acquireStartSlot("/one").then((begun) => (order.push("second"), begun));
  const third = acquireStartSlot("/one").then((begun) => (order.push("third"), begun));
  (await acquireStartSlot("/other"))();
  expect(order).toEqual([]);
  first();
  (await second)();
  expect(order).toEqual(["second"]);
  (await third)();
  expect(order).toEqual(["second", "third"]);
  (await acquireStartSlot("/one"))();
});

test("one that never says that it has begun holds the next up for a while only", async () => {
  await acquireStartSlot("/silent", 20);
  (await acquireStartSlot("/silent"))();
});
