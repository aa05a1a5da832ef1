import { expect, it } from "vitest";
import { compileGlob } from "./glob.ts";

it.each([
  ["*.ts", "a.ts", true],
  ["*.ts", "a.tsx", false],
  ["*.ts", "src/a.ts", false],
  ["**/*.ts", "a.ts", true],
  ["**/*.ts", "src/deep/a.ts", true],
  ["./src/**", "src/deep/a.ts", true],
  ["src/**/test/*.ts", "src/a/b/test/c.ts", true],
  ["src/**/test/*.ts", "src/test/c.ts", true],
  ["src/**/test/*.ts", "src/test/c/d.ts", false],
  ["a?c", "abc", true],
  ["a?c", "ac", false],
  ["a?c", "a\u{1f600}c", true],
  ["[a-c]x", "bx", true],
  ["[!a-c]x", "bx", false],
  ["[a-]x", "-x", true],
  ["[", "[", true],
  ["{a,b}.{ts,md}", "b.md", true],
  ["{a,{b,c}}d", "cd", true],
  ["{a", "{a", true],
  ["\\*", "*", true],
  ["\\*", "a", false],
  ["a**b", "axxb", true],
  [".*", ".env", true],
])("%s matches %s: %s", (pattern, path, matches) => {
  expect(compileGlob(pattern)(path)).toBe(matches);
});

it("matches pathological patterns in bounded time", () => {
  const name = "a".repeat(250);
  expect(compileGlob(`${"*a".repeat(100)}b`)(name)).toBe(false);
  expect(compileGlob(`${"**/a/".repeat(100)}b`)("a/".repeat(200))).toBe(false);
  expect(compileGlob("{a,b}".repeat(500))(name)).toBe(false);
});
