import * as fc from "fast-check";
import { expect, test } from "vitest";
import { findInexactNumber, isExactNumber } from "./exact-numbers.ts";

test.each(["0", "-1", "9007199254740991", "10000000000000000000", "1e21", "1.7976931348623157e308", "0.1", "-0.0"])(
  "%s is exact",
  (text) => expect(isExactNumber(text)).toBe(true),
);

test.each(["3.14159265358979323846", "0.10000000000000000555"])(
  "%s counts as exact, although its decimal places are rounded",
  (text) => expect(isExactNumber(text)).toBe(true),
);

test.each([
  "9007199254740993",
  "12345678901234567890",
  "-12345678901234567890",
  "12345678901234567890e0",
  "1152921504606846976", // Exact as a double, but printed as 1152921504606847000.
  "12345678901234567.89",
  "1e400",
  "-1e400",
  "1e-400",
  "0xFFFFFFFFFFFFFFFF",
  ".inf",
])("%s is not exact", (text) => expect(isExactNumber(text)).toBe(false));

test("returns the path to the number and ignores digits in strings", () => {
  expect(findInexactNumber('{"12345678901234567890": "12345678901234567890 \\\\\\" 1e400", "a": 1e5}')).toBeNull();
  expect(findInexactNumber('{"a":[{"b \\"c\\\\":1},[0, {"x":{},"k\\u0041":[true,12345678901234567890]}]]}')).toEqual({
    path: ["a", 1, 1, "kA", 1],
    text: "12345678901234567890",
  });
  expect(findInexactNumber("1e400")).toEqual({ path: [], text: "1e400" });
});

test("accepts everything that JSON.stringify writes", () => {
  fc.assert(
    fc.property(fc.jsonValue(), (value) => {
      expect(findInexactNumber(JSON.stringify(value))).toBeNull();
    }),
    { numRuns: 300 },
  );
});
