import { expect, test } from "vitest";
import { startInTurn } from "./start-in-turn.ts";

test("each starts when the one before has begun, and other folders do not wait", async () => {
  const order: string[] = [];
  const first = await startInTurn("/one");
  const second = startInTurn("/one").then((begun) => (order.push("second"), begun));
  const third = startInTurn("/one").then((begun) => (order.push("third"), begun));
  (await startInTurn("/other"))();
  expect(order).toEqual([]);
  first();
  (await second)();
  expect(order).toEqual(["second"]);
  (await third)();
  expect(order).toEqual(["second", "third"]);
  (await startInTurn("/one"))();
});

test("one that never says that it has begun holds the next up for a while only", async () => {
  await startInTurn("/silent", 20);
  (await startInTurn("/silent"))();
});
