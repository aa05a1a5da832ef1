import { expect, test } from "vitest";
import { makeExcerpt, createStderrExcerpt } from "./stderr-excerpt.ts";

test("keeps short text whole, without surrounding whitespace", () => {
  expect(makeExcerpt("  why\n")).toBe("why");
  expect(makeExcerpt("x".repeat(500))).toBe("x".repeat(500));
});

test("keeps the beginning and the end of long text, with an ellipsis between them", () => {
  const excerpt = makeExcerpt(`first\n${"more words ".repeat(100)}\nlast line`);
  expect(excerpt).toMatch(/^first\n(more|words| )+\n\[\.\.\.\]\n(more|words|\s)+\nlast line$/);
  expect(excerpt.length).toBeGreaterThan(450);
  expect(excerpt.length).toBeLessThanOrEqual(500);
});

test("splits a word only if there is no space to split at", () => {
  expect(makeExcerpt(`the key ${"k".repeat(1000)} is wrong`)).toBe("the key\n[...]\nis wrong");
  expect(makeExcerpt("x".repeat(1000))).toMatch(/^x{246}\n\[\.\.\.\]\nx{247}$/);
});

test("never splits a character", () => {
  for (const before of ["", "a"]) expect(makeExcerpt(before + "🎉".repeat(400)).isWellFormed()).toBe(true);
});

test("keeps the last line of a stream of any length", () => {
  const excerpt = createStderrExcerpt();
  excerpt.push(Buffer.from("the first line\n"));
  for (let count = 0; count < 100; count++) excerpt.push(Buffer.alloc(60_000, "noise\n"));
  excerpt.push(Buffer.from("Error: the cause\n"));
  expect(excerpt.text()).toMatch(/^the first line\n[^]*\nError: the cause$/);
  expect(excerpt.text().length).toBeLessThanOrEqual(500);
});
