import { expect, test } from "vitest";
import { createHeavyTurns } from "./heavy-turns.ts";

const hour = 3_600_000;
const waitTurns = async (count: number): Promise<void> => {
  for (let round = 0; round < count; round += 1) await new Promise((resolve) => setImmediate(resolve));
};

test("runs heavy work at once while no light request is under way", async () => {
  const { waitForTurn, startLightRequest } = createHeavyTurns(hour);
  startLightRequest()();
  await waitForTurn();
});

test("lets light requests pass first, and continues when the last of them is done", async () => {
  const { waitForTurn, startLightRequest } = createHeavyTurns(hour);
  const [first, second] = [startLightRequest(), startLightRequest()];
  let isRunning = false;
  const running = waitForTurn().then(() => (isRunning = true));
  await waitTurns(50);
  first();
  // A second call must have no effect.
  first();
  await waitTurns(50);
  expect(isRunning).toBe(false);
  second();
  await running;
});

test("light requests that never end do not starve heavy work", async () => {
  const { waitForTurn, startLightRequest } = createHeavyTurns(1);
  startLightRequest();
  for (let piece = 0; piece < 5; piece += 1) await waitForTurn();
});
