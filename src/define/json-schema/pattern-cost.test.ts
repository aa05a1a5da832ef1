import { expect, test } from "vitest";
import { estimatePatternCost } from "./pattern-cost.ts";

test.each([
  ["^[a-z][a-z0-9-]*$", 100],
  ["^[a-z0-9]{1,63}$", 100],
  ["^\\d{4}-\\d{2}-\\d{2}$", 1000],
  ["^v?\\d+\\.\\d+$", 20],
  ["^(?:left|right)$", 1000],
  ["^(ab)+$", 100],
  ["^\\p{L}+$", 100],
  ["^[^\\]\\\\]*$", 100],
  ["^a+?b$", 100],
  ["^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$", 1000],
  ["^(?:[0-9A-F]{2}:){5}[0-9A-F]{2}$", 1000],
  ["", 1000],
])("finds %j cheap for %i characters", (pattern, length) => {
  expect(estimatePatternCost(pattern, length)).toBeLessThan(200_000);
});

test.each([
  ["^(a+)+$", 40],
  ["^(a|a)*$", 40],
  ["^(a|ab)+$", 40],
  ["(.*)*x", 40],
  ["^(?:a?){50}$", 60],
  ["a?".repeat(30) + "a".repeat(30), 30],
  ["(a|b)".repeat(30) + "$", 30],
  ["^" + ".*".repeat(10) + "x$", 60],
  ["^(a)\\1*$", 40],
  ["^(?=a+$)a+$", 40],
  ["^(?<!a+)b$", 40],
  ["^(?<n>a)\\k<n>$", 40],
  ["a+$", 100_000],
  ["(?:(?:a{50}){50}){50}x", 1000],
  ["(?:abcdefghij){100}", 1000],
  ["^(([a-z])+.)+[A-Z]([a-z])+$", 40],
  ["(", 10],
  ["a)b", 10],
  ["[a", 10],
])("finds %j too expensive for %i characters", (pattern, length) => {
  expect(estimatePatternCost(pattern, length)).toBeGreaterThan(200_000);
});
