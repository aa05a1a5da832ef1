import { describe, expect, it } from "vitest";
import { inputLines, shortInput, visible } from "./question-view.ts";

describe("visible", () => {
  it("escapes what a terminal would interpret or hide, and nothing else", () => {
    expect(visible("a\u001b[2K\u0007b")).toBe("a\\u001b[2K\\u0007b");
    expect(visible("rm\u202e -rf\u200b")).toBe("rm\\u202e -rf\\u200b");
    expect(visible("é 日 🙂\nsecond")).toBe("é 日 🙂\nsecond");
  });
});

describe("shortInput", () => {
  it("is the command, the path or the URL", () => {
    expect(shortInput({ command: "npm test", timeout: 5 })).toBe("npm test");
    expect(shortInput({ argv: ["rm", "-rf", "a b"] })).toBe("rm -rf 'a b'");
    expect(shortInput({ path: "a.txt", content: "..." })).toBe("a.txt");
    expect(shortInput({ url: "https://example.com" })).toBe("https://example.com");
  });

  it("is JSON if the input has no main field", () => {
    expect(shortInput({ x: 1 })).toBe('{"x":1}');
    expect(shortInput(undefined)).toBe("");
  });

  it("stays on one line", () => {
    expect(shortInput({ command: "one\ntwo" })).toBe("one\\ntwo");
  });
});

describe("inputLines", () => {
  it("shows a command with all of its lines", () => {
    expect(inputLines({ command: "one\ntwo" })).toEqual(["$ one", "  two"]);
  });

  it("shows every field of other input", () => {
    expect(inputLines({ command: "ls", cwd: "/tmp", n: 1 })).toEqual(["command  ls", "cwd      /tmp", "n        1"]);
  });

  it("escapes the names of fields, too", () => {
    expect(inputLines({ "a\u001b[8m": "x", b: "y" })).toEqual(["a\\u001b[8m  x", "b           y"]);
  });
});
