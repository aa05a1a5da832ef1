import { describe, expect, it } from "vitest";
import { truncateToWidth, measureWidth, wrapLine } from "./text-width.ts";

describe("measureWidth", () => {
  it("counts wide characters twice, and combining characters and colours not at all", () => {
    expect(measureWidth("abc")).toBe(3);
    expect(measureWidth("日本")).toBe(4);
    expect(measureWidth("e\u0301")).toBe(1);
    expect(measureWidth("🙂")).toBe(2);
    expect(measureWidth("\u001b[31mred\u001b[39m")).toBe(3);
  });
});

describe("truncateToWidth", () => {
  it("keeps text that fits, and adds an ellipsis to text that it truncates", () => {
    expect(truncateToWidth("abc", 3)).toBe("abc");
    expect(truncateToWidth("abcdef", 4)).toBe("abc…");
    expect(truncateToWidth("日本語", 5)).toBe("日本…");
  });

  it("resets the colour of truncated text", () => {
    expect(truncateToWidth("\u001b[31mabcdef\u001b[39m", 4)).toBe("\u001b[31mabc…\u001b[0m");
  });
});

describe("wrapLine", () => {
  it("breaks between words", () => {
    expect(wrapLine("one two three", 8)).toEqual(["one two", "three"]);
  });

  it("keeps the indent of the line, even after a colour sequence", () => {
    expect(wrapLine("  one two three", 9)).toEqual(["  one two", "  three"]);
    expect(wrapLine("\u001b[2m  one two\u001b[22m", 6)).toEqual(["\u001b[2m  one", "  two\u001b[22m"]);
  });

  it("breaks a word that is longer than a row", () => {
    expect(wrapLine("abcdefgh", 3)).toEqual(["abc", "def", "gh"]);
  });

  it("never produces a row wider than the terminal", () => {
    for (const line of ["日本語日本語", "a 日 b 本", "   deep indent", "x".repeat(50)])
      for (const row of wrapLine(line, 5)) expect(measureWidth(row)).toBeLessThanOrEqual(5);
  });
});
