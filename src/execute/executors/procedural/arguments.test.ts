import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ListStyle } from "../../../model/to-arguments.ts";
import { buildArguments, findCommand } from "./arguments.ts";

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-argv-"));
  writeFileSync(join(directory, "print.cjs"), 'require("fs").writeSync(1, JSON.stringify(process.argv.slice(2)))');
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

function buildArgv(command: string, parameters: Record<string, unknown>, style: ListStyle = "comma"): string[] {
  const built = buildArguments(command, parameters, style);
  if (!built.ok) throw new Error(JSON.stringify(built.faults));
  return built.argv;
}

test("puts the command's own words first and keeps quoted ones together", () => {
  expect(buildArgv("python -m crawler.main", { url: "https://example.com", depth: 2, verbose: true })).toEqual([
    "python",
    "-m",
    "crawler.main",
    "--url",
    "https://example.com",
    "--depth",
    "2",
    "--verbose",
  ]);
  expect(buildArgv(`'my tool' --title "a 'b' c"`, {})).toEqual(["my tool", "--title", "a 'b' c"]);
  expect(buildArgv(String.raw`scripts/args a\ b "q\"q" 'c\d'`, {})).toEqual(["scripts/args", "a b", 'q"q', "c\\d"]);
});

test("expands a variable in the command to one word", () => {
  const variables = { allowed: ["TOOL"], env: { TOOL: 'a b "c" ; $(id)', HOME: "/root" } };
  expect(buildArguments("run --with=${TOOL}", {}, "comma", variables)).toEqual({
    ok: true,
    argv: ["run", '--with=a b "c" ; $(id)'],
  });
  const refused = buildArguments("run ${HOME}", {}, "comma", variables);
  expect(refused).toMatchObject({ ok: false, faults: [{ message: expect.stringContaining("${HOME}") as string }] });
});

test("rejects a command that cannot be split and an argument that cannot be passed", () => {
  expect(buildArguments("run 'x", {}, "comma").ok).toBe(false);
  expect(buildArguments("  ", {}, "comma").ok).toBe(false);
  expect(buildArguments("run", { a: "\0" }, "comma")).toMatchObject({ ok: false, faults: [{ path: "/a" }] });
});

test("looks for a command in the runner's directory, then on PATH if it is a bare name", () => {
  mkdirSync(join(directory, "bin"));
  mkdirSync(join(directory, "ls"));
  writeFileSync(join(directory, "bin", "tool"), "#!/bin/sh\n");
  expect(findCommand("bin/tool", directory, "/usr/bin:/bin")).toMatchObject({ missing: "not_executable" });
  chmodSync(join(directory, "bin", "tool"), 0o755);
  expect(findCommand("bin/tool", directory, "/usr/bin:/bin")).toEqual({ found: join(directory, "bin", "tool") });
  expect(findCommand("tool", directory, join(directory, "bin"))).toEqual({ found: join(directory, "bin", "tool") });
  expect("found" in findCommand("ls", directory, "/usr/bin:/bin")).toBe(true);
  expect(findCommand("bin/none", directory, "/usr/bin:/bin")).toMatchObject({ missing: "nowhere" });
  expect(findCommand("/bin/none-such", directory, "/bin")).toMatchObject({ missing: "nowhere" });
});

const pieces = [
  "",
  " ",
  "-",
  "--",
  "--x",
  "--x=y",
  "-rf",
  "=",
  ",",
  ";",
  "|",
  "&",
  "$(id)",
  "`id`",
  "${HOME}",
  "$HOME",
  "'",
  '"',
  "\\",
  "\\n",
  "\n",
  "\r",
  "\t",
  "\x1b[31m",
  "\x7f",
  "*",
  "?",
  "~",
  "#",
  "!",
  "%s",
  "<",
  ">",
  "@file",
  "日本",
  "🐑",
  "é",
  "\u202e",
  "\ufeff",
  "\ufffd",
  "../..",
  "/etc/passwd",
  "null",
  "true",
  "0",
  "-1",
  "1e9",
];
/** 300 values, the same in every run: each piece alone, then pairs and triples. */
const hostileValues = Array.from({ length: 300 }, (_, index) => {
  const n = pieces.length;
  if (index < n) return pieces[index]!;
  return pieces[(index * 7) % n]! + pieces[(index * 13 + 5) % n]! + (index % 2 ? pieces[(index * 31 + 11) % n]! : "");
});

/** Parses `--key value` and `--key=value` as commands do: a separate word that starts with a dash is never a value. */
function readBack(argv: readonly string[]): [string, string | true][] {
  const read: [string, string | true][] = [];
  for (let index = 0; index < argv.length; index++) {
    const word = argv[index]!;
    expect(word.startsWith("--")).toBe(true);
    const equals = word.indexOf("=");
    if (equals >= 0) read.push([word.slice(2, equals), word.slice(equals + 1)]);
    else if (word === "--flag") read.push(["flag", true]);
    else {
      const value = argv[++index]!;
      expect(value.startsWith("-")).toBe(false);
      read.push([word.slice(2), value]);
    }
  }
  return read;
}

test("passes 300 hostile values to a real child unchanged, in every style", () => {
  const parameters: Record<string, unknown> = { flag: true, off: false, none: null };
  for (const [index, value] of hostileValues.entries()) parameters[`p${index}`] = value;
  parameters["list"] = hostileValues;
  parameters["object"] = Object.fromEntries(hostileValues.map((value, index) => [`${index}${value}`, value]));
  for (const style of ["repeat", "json"] as const) {
    const read = readBack(
      runChild(buildArgv(`${quote(process.execPath)} ${quote(join(directory, "print.cjs"))}`, parameters, style)),
    );
    expect(read[0]).toEqual(["flag", true]);
    expect(read.slice(1, 301)).toEqual(hostileValues.map((value, index) => [`p${index}`, value]));
    const list = read.filter(([name]) => name === "list").map(([, value]) => String(value));
    expect(style === "json" ? JSON.parse(list[0]!) : list).toEqual(hostileValues);
    expect(JSON.parse(String(read.at(-1)![1]))).toEqual(parameters["object"]);
  }
  const valuesWithoutCommas = hostileValues.filter((value) => !value.includes(","));
  const [, joined] = readBack(
    runChild(
      buildArgv(`${quote(process.execPath)} ${quote(join(directory, "print.cjs"))}`, { list: valuesWithoutCommas }),
    ),
  )[0]!;
  expect(String(joined).split(",")).toEqual(valuesWithoutCommas);
});

test("passes the values to a shell script unchanged, one by one", () => {
  const script = join(directory, "print.sh");
  writeFileSync(script, `#!/bin/sh\nfor word in "$@"; do printf '%s\\0' "$word"; done\n`, { mode: 0o755 });
  for (const value of hostileValues.slice(0, pieces.length)) {
    const [file, ...rest] = buildArgv(quote(script), { message: value });
    const words = execFileSync(file!, rest, { encoding: "utf8" }).split("\0").slice(0, -1);
    expect(readBack(words)).toEqual([["message", value]]);
  }
});

test("accepts no argument that is too large for the kernel", () => {
  const [file, ...rest] = buildArgv(quote("/bin/true"), { m: "x".repeat(131_071), n: `-${"x".repeat(131_066)}` });
  expect(spawnSync(file!, rest).status).toBe(0);
});

function runChild([file, ...rest]: string[]): string[] {
  return JSON.parse(execFileSync(file!, rest, { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 })) as string[]; // The test's own script printed it.
}

function quote(path: string): string {
  return `'${path}'`;
}
