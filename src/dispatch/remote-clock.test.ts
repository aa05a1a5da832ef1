import { expect, it } from "vitest";
import { createRemoteClock } from "./remote-clock.ts";

it("returns null before the first reading", () => {
  const clock = createRemoteClock();
  expect([clock.earliest(5), clock.latest(5)]).toEqual([null, null]);
});

it("keeps the bounds of quick readings when slow ones follow", () => {
  const clock = createRemoteClock();
  // The remote clock is 1000 ahead.
  clock.addReading(1005, 0, 10);
  expect([clock.earliest(10), clock.latest(10)]).toEqual([1005, 1016]);
  clock.addReading(1101, 100, 102);
  expect([clock.earliest(102), clock.latest(102)]).toEqual([1101, 1104]);
  clock.addReading(1250, 200, 900);
  expect([clock.earliest(900), clock.latest(900)]).toEqual([1899, 1902]);
});

it("uses the newest reading after a clock was set", () => {
  const clock = createRemoteClock();
  clock.addReading(1005, 0, 10);
  for (const at of [605, 9105]) {
    clock.addReading(at, 100, 110);
    expect([clock.earliest(110), clock.latest(110)]).toEqual([at, at + 11]);
  }
});
