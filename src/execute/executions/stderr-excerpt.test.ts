import { expect, test } from "vitest";
import { excerptOf, createStderrExcerpt } from "./stderr-excerpt.ts";

test("what is short is told whole, without the blanks around it", () => {
  expect(excerptOf("  why\n")).toBe("why");
  expect(excerptOf("x".repeat(500))).toBe("x".repeat(500));
});

test("of what is long the beginning and the end are told, with a mark between them", () => {
  const told = excerptOf(`first\n${"more words ".repeat(100)}\nlast line`);
  expect(told).toMatch(/^first\n(more|words| )+\n\[\.\.\.\]\n(more|words|\s)+\nlast line$/);
  expect(told.length).toBeGreaterThan(450);
  expect(told.length).toBeLessThanOrEqual(500);
});

test("a word is cut only where there is no other way", () => {
  expect(excerptOf(`the key ${"k".repeat(1000)} is wrong`)).toBe("the key\n[...]\nis wrong");
  expect(excerptOf("x".repeat(1000))).toMatch(/^x{246}\n\[\.\.\.\]\nx{247}$/);
});

test("a character is never cut in two", () => {
  for (const before of ["", "a"]) expect(excerptOf(before + "🎉".repeat(400)).isWellFormed()).toBe(true);
});

test("the last line of a stream of any length is there", () => {
  const said = createStderrExcerpt();
  said.push(Buffer.from("the first line\n"));
  for (let count = 0; count < 100; count++) said.push(Buffer.alloc(60_000, "noise\n"));
  said.push(Buffer.from("Error: the cause\n"));
  expect(said.text()).toMatch(/^the first line\n[^]*\nError: the cause$/);
  expect(said.text().length).toBeLessThanOrEqual(500);
});
