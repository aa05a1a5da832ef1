import { expect, test } from "vitest";
import { acquireStartLock } from "./start-lock.ts";

test("grants the lock after the previous start, without delaying other directories", async () => {
  const order: string[] = [];
  const first = await acquireStartLock("/one");
  const second = acquireStartLock("/one").then((release) => (order.push("second"), release));
  const third = acquireStartLock("/one").then((release) => (order.push("third"), release));
  (await acquireStartLock("/other"))();
  expect(order).toEqual([]);
  first();
  (await second)();
  expect(order).toEqual(["second"]);
  (await third)();
  expect(order).toEqual(["second", "third"]);
  (await acquireStartLock("/one"))();
});

test("grants the lock after a timeout if a client never starts", async () => {
  await acquireStartLock("/silent", 20);
  (await acquireStartLock("/silent"))();
});
