import { expect, it } from "vitest";
import { suggest } from "./suggest.ts";

it.each([
  ["timout", "timeout"],
  ["default_timout_seconds", "default_timeout_seconds"],
  ["exce", "exec"],
  ["JSON", "json"],
  ["completely-different", undefined],
  ["", undefined],
])("%s -> %s", (typed, expected) => {
  expect(suggest(typed, ["timeout", "default_timeout_seconds", "exec", "json"])).toBe(expected);
});
