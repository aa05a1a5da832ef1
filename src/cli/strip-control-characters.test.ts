import { describe, expect, it, test } from "vitest";
import { toJsonLine } from "./json-line.ts";
import { stripControlCharacters } from "./strip-control-characters.ts";

/** Sequences by their effect on a terminal, with the plain text that must remain. */
const hostile: Record<string, readonly [text: string, plain: string]> = {
  "moves the cursor and erases (CSI)": ["a\u001b[1A\u001b[2Kb", "a[1A[2Kb"],
  "writes to the clipboard (OSC 52)": ["a\u001b]52;c;b3duZWQ=\u0007b", "a]52;c;b3duZWQ=b"],
  "hides an address behind a word (OSC 8)": [
    "\u001b]8;;http://e.test\u001b\\ok\u001b]8;;\u001b\\",
    "]8;;http://e.test\\ok]8;;\\",
  ],
  "sets the title (OSC 0)": ["\u001b]0;owned\u0007", "]0;owned"],
  "makes the terminal answer (DCS)": ["\u001bP$q q\u001b\\", "P$q q\\"],
  "is a whole sequence in one C1 character": ["a\u009b2J\u009d52;c;eA==\u009cb\u0090q\u0085", "a2J52;c;eA==bq"],
  "reorders the line": ["a\u202eb\u2066c\u2069\u202c\u200f\u061cd", "abcd"],
  "overwrites the line": ["failed\rok    ", "failedok    "],
  "erases characters": ["rm\u0008\u0008ls\u007f", "rmls"],
  "rings the bell": ["a\u0007b", "ab"],
  "resets the terminal": ["\u001bc", "c"],
  "changes the character set": ["\u001b(0\u000e\u000f", "(0"],
  "hides text": ["a\u001b[8mb\u001b[1;8mc\u001b[08md", "a[8mb[1;8mc[08md"],
  "becomes a sequence once another one is removed": [
    "\u001b\u0000[2J\u001b\u202e]0;x\u0007\u001b[\u00002J",
    "[2J]0;x[2J",
  ],
  "asks the terminal to answer": ["a\u001b[6n\u001b[c\u001bZb", "a[6n[cZb"],
  "uses the other screen": ["a\u001b[?1049hb", "a[?1049hb"],
  "reports the mouse": ["a\u001b[?1000hb", "a[?1000hb"],
  "is incomplete": ["a\u001b", "a"],
};

describe.each([{ colours: false }, { colours: true }])("with %j", (options) => {
  test.each(Object.entries(hostile))("removes what %s", (_, [text, plain]) => {
    expect(stripControlCharacters(text, options)).toBe(plain);
  });

  it("keeps text of all scripts, tabs and line breaks", () => {
    const text = "a\tb\nČeština עברית عربى 日本語 👩‍🚀 é";
    expect(stripControlCharacters(text, options)).toBe(text);
  });

  it("handles very long text in one pass", () => {
    const text = "\u001b[".repeat(100_000);
    expect(stripControlCharacters(text, options)).toBe("[".repeat(100_000));
  });
});

it("keeps colours only on request", () => {
  const text = "\u001b[31mred\u001b[0m \u001b[38;5;208morange\u001b[m";
  expect(stripControlCharacters(text, { colours: true })).toBe(text);
  expect(stripControlCharacters(text)).toBe("[31mred[0m [38;5;208morange[m");
});

it("writes JSON that is safe on a terminal and has the same meaning", () => {
  const value = { ...hostile, half: "\ud800" };
  const line = toJsonLine(value);
  expect(JSON.parse(line)).toEqual(value);
  expect(stripControlCharacters(line)).toBe(line);
});
