import * as fc from "fast-check";
import { execFileSync } from "node:child_process";
import { expect, test } from "vitest";
import { splitWords } from "../model/split-words.ts";
import { parseCommandLine } from "./command-line.ts";

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
])("runs %j without a shell", (text, expected) => expect(parse(text)).toEqual(expected));

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
])("runs %j in a shell", (text) => expect(parse(text)).toEqual(shell(text)));

test("runs a builtin that also exists as a program without a shell", () => {
  expect(parse("echo hello")).toEqual(direct("echo", "hello"));
  expect(parse("printf x")).toEqual(shell("printf x"));
});

test("always uses the shell with true, and never with false", () => {
  expect(parse("ls", true)).toEqual(shell("ls"));
  expect(parse("a | b $c *", false)).toEqual(direct("a", "|", "b", "$c", "*"));
  expect(parse("exit 42", false)).toEqual(direct("exit", "42"));
  expect(parse("a\\\\b 'c d'", false)).toEqual(direct("a\\b", "c d"));
});

test.each(["", "  ", "\n", "''", '"" x'])("rejects %j as empty", (text) => {
  expect(() => parse(text, false)).toThrow(expect.objectContaining({ name: "RequestError", code: "DROVER-USE-002" }));
});

test.each([
  ["echo 'open", "the ' at character 6 is never closed"],
  ['echo "a\\"', 'the " at character 6 is never closed'],
  ["echo a\\", "the backslash at character 7 escapes nothing"],
])("rejects %j without a shell, and reports the position of the problem", (text, problem) => {
  expect(() => parse(text, false)).toThrow(
    expect.objectContaining({ code: "DROVER-USE-001", message: expect.stringContaining(problem) }),
  );
});

test("splits words exactly as /bin/sh does", () => {
  const plain = fc.stringMatching(/^[a-z0-9=:/.,@%+é-]{1,4}$/);
  const inside = fc.string({ unit: fc.constantFrom("a", " ", "$", "`", "\\", "\n", "é"), maxLength: 4 });
  const single = fc.tuple(inside, fc.constantFrom("", '"')).map((parts) => `'${parts.join("")}'`);
  const escaped = fc.constantFrom("$", "`", '"', "\\", "\n", "a", " ", "'").map((character) => `\\${character}`);
  const double = fc.array(fc.oneof(plain, escaped, fc.constantFrom("'", " ", "\n"))).map((all) => `"${all.join("")}"`);
  const word = fc.array(fc.oneof(plain, single, double, escaped), { minLength: 1, maxLength: 4 });
  const line = fc
    .array(word, { minLength: 1, maxLength: 4 })
    .map((words) => words.map((parts) => parts.join("")).join(" \t "));
  fc.assert(
    fc.property(fc.array(line, { minLength: 100, maxLength: 100 }), (lines) => {
      // One shell runs many lines; each prints the number of its words and the words, separated by NUL.
      const script = lines.map((text) => `show ${text}\n`).join("");
      const show = `show() { printf '%s\\0' "$#" "$@"; }\n`;
      const printed = execFileSync("/bin/sh", ["-c", show + script], { encoding: "utf8" });
      const expected = lines.flatMap((text) => {
        const split = splitWords(text);
        return split.ok ? [split.words.length, ...split.words] : [split.problem];
      });
      expect(printed.split("\0").slice(0, -1)).toEqual(expected.map(String));
    }),
    { numRuns: 5 },
  );
});
