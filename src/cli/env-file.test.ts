import { describe, expect, it } from "vitest";
import { parseEnvFile } from "./env-file.ts";

describe("parseEnvFile", () => {
  it("reads plain, single-quoted and double-quoted values, comments and `export`", () => {
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
    ["just words", "expected NAME=value"],
    ["1A=x", "expected NAME=value"],
    ["A =x", "expected NAME=value"],
    ["FIRST=again", "set twice"],
    ["A='open", "never closed"],
    ['A="open\\"', "never closed"],
    ["A='x'y", "after the closing quote"],
    ['A="\\x41"', "unknown escape \\x: use one of"],
    ["A=x # is this a comment?", "must be quoted"],
    ['A=say "hi"', "must be quoted"],
    ["A=goes on \\", "must be quoted"],
    ["A=nul\u0000byte", "NUL"],
  ])("reports the line number of %j, but not the line itself", (line, problem) => {
    const firstLines = "FIRST=one\n# two\n";
    expect(() => parseEnvFile(`${firstLines}${line}\n`, "my.env")).toThrow(`my.env, line 3: `);
    expect(() => parseEnvFile(`${firstLines}${line}\n`, "my.env")).toThrow(problem);
    expect(() => parseEnvFile(`${firstLines}${line}\n`, "my.env")).not.toThrow(line);
  });
});
