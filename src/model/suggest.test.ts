import { expect, it } from "vitest";
import { suggest } from "./suggest.ts";

it.each([
  ["timout", "timeout"],
  ["default_timout_seconds", "default_timeout_seconds"],
  ["exce", "exec"],
  ["JSON", "json"],
  ["completely-different", undefined],
  ["", undefined],
])("suggests for %j: %s", (typed, expected) => {
  expect(suggest(typed, ["timeout", "default_timeout_seconds", "exec", "json"])).toBe(expected);
});

it("does not compare text that is too long to be a typo", () => {
  const candidates = Array.from({ length: 1000 }, (_, index) => `${index}${"x".repeat(1000)}`);
  expect(suggest("x".repeat(5_000_000), candidates)).toBeUndefined();
  expect(suggest("timeou", ["x".repeat(5_000_000), "timeout"])).toBe("timeout");
});

it("stops comparing after a limited amount of work", () => {
  let compared = 0;
  function* names() {
    for (; compared < 1_000_000; compared += 1) yield `${compared}`.padStart(60, "x");
  }
  expect(suggest("y".repeat(60), names())).toBeUndefined();
  expect(compared).toBeLessThan(1000);
});
