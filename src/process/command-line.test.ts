import * as fc from "fast-check";
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { parseCommandLine, splitWords } from "./command-line.ts";

const parse = (text: string, useShell: "auto" | boolean = "auto"): unknown =>
  parseCommandLine(text, useShell, { isOnPath: (name) => name === "echo" || name === "test" });
const direct = (executable: string, ...rest: string[]): unknown => ({ executable, arguments: rest, shell: false });
const shell = (text: string): unknown => ({ executable: "/bin/sh", arguments: ["-c", text], shell: true });

test.each([
  ["ls", direct("ls")],
  ["  ls   -l\t-a ", direct("ls", "-l", "-a")],
  ['grep "a b" file', direct("grep", "a b", "file")],
  ["grep 'a \"b\"' x", direct("grep", 'a "b"', "x")],
  ["a''b \"\" c", direct("ab", "", "c")],
  ["echo --k=v", direct("echo", "--k=v")],
  ["test -f x", direct("test", "-f", "x")],
])("%j is plain words and runs without a shell", (text, expected) => expect(parse(text)).toEqual(expected));

test.each([
  "a | b",
  "a && b",
  "a; b",
  "a < b",
  "a > b",
  "(a)",
  "echo $x",
  "echo `x`",
  "ls *",
  "ls ?",
  "ls [a]",
  "! a",
  "a # b",
  "ls ~",
  "a\\ b",
  "a\nb",
  "K=V cmd",
  'echo "$HOME"',
  "echo 'a|b'",
  "exit 42",
  "cd /tmp",
  "export A",
  "echo 'open",
  ". ./x",
])("%j needs a shell", (text) => expect(parse(text)).toEqual(shell(text)));

test("a builtin that is a program too runs as the program", () => {
  expect(parse("echo hello")).toEqual(direct("echo", "hello"));
  expect(parse("printf x")).toEqual(shell("printf x"));
});

test("with true everything goes through the shell, with false nothing does", () => {
  expect(parse("ls", true)).toEqual(shell("ls"));
  expect(parse("a | b $c *", false)).toEqual(direct("a", "|", "b", "$c", "*"));
  expect(parse("exit 42", false)).toEqual(direct("exit", "42"));
  expect(parse("a\\b 'c d'", false)).toEqual(direct("a\\b", "c d"));
});

test.each(["", "  ", "\n", "''", '"" x'])("%j is refused as empty", (text) => {
  expect(() => parse(text, false)).toThrow(expect.objectContaining({ name: "RequestError", code: "DROVER-USE-002" }));
});

test("without a shell an open quote is refused", () => {
  expect(() => parse("echo 'open", false)).toThrow(expect.objectContaining({ code: "DROVER-USE-001" }));
});

test("plain words are split as a shell splits them", () => {
  const word = fc.stringMatching(/^[a-z0-9=:/.,@%+-]{1,6}$/);
  const quoted = fc.oneof(
    word,
    word.map((text) => `"${text} x"`),
    word.map((text) => `'${text}  "y'`),
    fc.constant("''"),
  );
  const line = fc.array(quoted, { minLength: 1, maxLength: 6 }).map((words) => words.join(" "));
  fc.assert(
    fc.property(fc.array(line, { minLength: 20, maxLength: 20 }), (lines) => {
      // one shell for many lines: each prints its words, a NUL after each word and one more after each line
      const script = lines.map((text) => `printf '%s\\0' ${text}; printf '\\0'`).join("\n");
      const printed = execFileSync("/bin/sh", ["-c", script], { encoding: "utf8" });
      const expected = lines
        .map(
          (text) =>
            `${splitWords(text)!
              .map((each) => `${each}\0`)
              .join("")}\0`,
        )
        .join("");
      expect(printed).toBe(expected);
    }),
    { numRuns: 20 },
  );
});
