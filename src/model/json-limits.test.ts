import { expect, it } from "vitest";
import { findExceededLimit } from "./json-limits.ts";

const limits = { depth: 10, values: 1000, names: 50 };
const toObject = (names: readonly string[]): Uint8Array =>
  Buffer.from(`{${names.map((name) => `"${name}":0`).join(",")}}`);

it.each([
  ["plain letters", (index: number) => `name${index}`],
  ["short escapes only", (index: number) => index.toString(2).replaceAll("0", "\\n").replaceAll("1", "\\t")],
  ["escaped quotes", (index: number) => `\\"${"\\\\".repeat(index)}`],
])("counts distinct names that consist of %s", (_, createName) => {
  const names = Array.from({ length: 51 }, (_unused, index) => createName(index));
  expect(findExceededLimit(toObject(names), limits)).toBe("names");
  expect(findExceededLimit(toObject(names.slice(1)), limits)).toBeNull();
});
