import { expect, test } from "vitest";
import { acquireStartSlot } from "./start-slot.ts";

test("grants each slot after the previous start, without delaying other directories", async () => {
  const order: string[] = [];
  const first = await acquireStartSlot("/one");
  const second = acquireStartSlot("/one").then((release) => (order.push("second"), release));
  const third = acquireStartSlot("/one").then((release) => (order.push("third"), release));
  (await acquireStartSlot("/other"))();
  expect(order).toEqual([]);
  first();
  (await second)();
  expect(order).toEqual(["second"]);
  (await third)();
  expect(order).toEqual(["second", "third"]);
  (await acquireStartSlot("/one"))();
});

test("grants the next slot after a timeout if a client never starts", async () => {
  await acquireStartSlot("/silent", 20);
  (await acquireStartSlot("/silent"))();
});
