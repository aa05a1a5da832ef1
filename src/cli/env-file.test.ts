import { describe, expect, it } from "vitest";
import { parseEnvFile } from "./env-file.ts";

describe("parseEnvFile", () => {
  it("takes plain, single-quoted and double-quoted values, comments and `export`", () => {
    const content = [
      "\uFEFF# where it is",
      "DROVER_API_URL=http://127.0.0.1:8765",
      "",
      "  export POLL_INTERVAL_SECONDS=5",
      "EMPTY=",
      "HASH=a#b=c",
      "SINGLE='as $it \\n is # here'   # a comment",
      'DOUBLE="two\\nlines \\"and\\" a \\\\ and \\$HOME"',
      "WINDOWS=line\r",
    ].join("\n");
    expect(parseEnvFile(content, ".env")).toEqual({
      DROVER_API_URL: "http://127.0.0.1:8765",
      POLL_INTERVAL_SECONDS: "5",
      EMPTY: "",
      HASH: "a#b=c",
      SINGLE: "as $it \\n is # here",
      DOUBLE: 'two\nlines "and" a \\ and $HOME',
      WINDOWS: "line",
    });
  });

  it.each([
    ["just words", "not NAME=value"],
    ["1A=x", "not NAME=value"],
    ["A =x", "not NAME=value"],
    ["FIRST=again", "a second time"],
    ["A='open", "never closed"],
    ['A="open\\"', "never closed"],
    ["A='x'y", "behind the closing quote"],
    ['A="\\x41"', "\\x is not one of"],
    ["A=x # is this a comment?", "needs quotes"],
    ['A=say "hi"', "needs quotes"],
    ["A=goes on \\", "needs quotes"],
    ["A=nul\u0000byte", "NUL"],
  ])("names the line of %j, and not what stands in it", (line, what) => {
    const before = "FIRST=one\n# two\n";
    expect(() => parseEnvFile(`${before}${line}\n`, "my.env")).toThrow(`my.env, line 3: `);
    expect(() => parseEnvFile(`${before}${line}\n`, "my.env")).toThrow(what);
    expect(() => parseEnvFile(`${before}${line}\n`, "my.env")).not.toThrow(line);
  });
});
