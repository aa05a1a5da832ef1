import { describe, expect, it } from "vitest";
import { toInputLines, summarizeInput, escapeInvisible } from "./question-view.ts";

describe("escapeInvisible", () => {
  it("escapes what a terminal would interpret or hide, and nothing else", () => {
    expect(escapeInvisible("a\u001b[2K\u0007b")).toBe("a\\u001b[2K\\u0007b");
    expect(escapeInvisible("rm\u202e -rf\u200b")).toBe("rm\\u202e -rf\\u200b");
    expect(escapeInvisible("é 日 🙂\nsecond")).toBe("é 日 🙂\nsecond");
  });
});

describe("shortInput", () => {
  it("returns the command, the path or the URL", () => {
    expect(summarizeInput({ command: "npm test", timeout: 5 })).toBe("npm test");
    expect(summarizeInput({ argv: ["rm", "-rf", "a b"] })).toBe("rm -rf 'a b'");
    expect(summarizeInput({ path: "a.txt", content: "..." })).toBe("a.txt");
    expect(summarizeInput({ url: "https://example.com" })).toBe("https://example.com");
  });

  it("returns JSON if the input has no such field", () => {
    expect(summarizeInput({ x: 1 })).toBe('{"x":1}');
    expect(summarizeInput(undefined)).toBe("");
  });

  it("returns one line", () => {
    expect(summarizeInput({ command: "one\ntwo" })).toBe("one\\ntwo");
  });
});

describe("inputLines", () => {
  it("returns all lines of a command", () => {
    expect(toInputLines({ command: "one\ntwo" })).toEqual(["$ one", "  two"]);
  });

  it("returns every field of other input", () => {
    expect(toInputLines({ command: "ls", cwd: "/tmp", n: 1 })).toEqual(["command  ls", "cwd      /tmp", "n        1"]);
  });

  it("escapes the names of fields too", () => {
    expect(toInputLines({ "a\u001b[8m": "x", b: "y" })).toEqual(["a\\u001b[8m  x", "b           y"]);
  });
});
