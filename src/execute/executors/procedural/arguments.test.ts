import { execFileSync, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import type { ListStyle } from "../../../model/to-arguments.ts";
import { buildArguments, findCommand } from "./arguments.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "drover-argv-"));
  writeFileSync(join(folder, "print.cjs"), 'require("fs").writeSync(1, JSON.stringify(process.argv.slice(2)))');
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function argvOf(command: string, parameters: Record<string, unknown>, style: ListStyle = "comma"): string[] {
  const built = buildArguments(command, parameters, style);
  if (!built.ok) throw new Error(JSON.stringify(built.faults));
  return built.argv;
}

test("the command's own words come first, quoted ones as one", () => {
  expect(argvOf("python -m crawler.main", { url: "https://example.com", depth: 2, verbose: true })).toEqual([
    "python",
    "-m",
    "crawler.main",
    "--url",
    "https://example.com",
    "--depth",
    "2",
    "--verbose",
  ]);
  expect(argvOf(`'my tool' --title "a 'b' c"`, {})).toEqual(["my tool", "--title", "a 'b' c"]);
  expect(argvOf(String.raw`scripts/args a\ b "q\"q" 'c\d'`, {})).toEqual(["scripts/args", "a b", 'q"q', "c\\d"]);
});

test("a variable in the command stays one word, whatever is in it", () => {
  const variables = { allowed: ["TOOL"], env: { TOOL: 'a b "c" ; $(id)', HOME: "/root" } };
  expect(buildArguments("run --with=${TOOL}", {}, "comma", variables)).toEqual({
    ok: true,
    argv: ["run", '--with=a b "c" ; $(id)'],
  });
  const refused = buildArguments("run ${HOME}", {}, "comma", variables);
  expect(refused).toMatchObject({ ok: false, faults: [{ message: expect.stringContaining("${HOME}") as string }] });
});

test("a command that cannot be split, or an argument that cannot be carried, is a fault", () => {
  expect(buildArguments("run 'x", {}, "comma").ok).toBe(false);
  expect(buildArguments("  ", {}, "comma").ok).toBe(false);
  expect(buildArguments("run", { a: "\0" }, "comma")).toMatchObject({ ok: false, faults: [{ path: "/a" }] });
});

test("a command is looked for in the runner's directory, then, if it is a bare name, along PATH", () => {
  mkdirSync(join(folder, "bin"));
  mkdirSync(join(folder, "ls"));
  writeFileSync(join(folder, "bin", "tool"), "#!/bin/sh\n");
  expect(findCommand("bin/tool", folder, "/usr/bin:/bin")).toMatchObject({ missing: "not_executable" });
  chmodSync(join(folder, "bin", "tool"), 0o755);
  expect(findCommand("bin/tool", folder, "/usr/bin:/bin")).toEqual({ found: join(folder, "bin", "tool") });
  expect(findCommand("tool", folder, join(folder, "bin"))).toEqual({ found: join(folder, "bin", "tool") });
  expect("found" in findCommand("ls", folder, "/usr/bin:/bin")).toBe(true);
  expect(findCommand("bin/none", folder, "/usr/bin:/bin")).toMatchObject({ missing: "nowhere" });
  expect(findCommand("/bin/none-such", folder, "/bin")).toMatchObject({ missing: "nowhere" });
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
/** 300 values, the same in every run: each piece alone, then pairs and triples of them. */
const hostile = Array.from({ length: 300 }, (_, at) => {
  const n = pieces.length;
  if (at < n) return pieces[at]!;
  return pieces[(at * 7) % n]! + pieces[(at * 13 + 5) % n]! + (at % 2 ? pieces[(at * 31 + 11) % n]! : "");
});

/** How commands read `--key value` and `--key=value`: a word of its own that begins with a dash is never a value. */
function readBack(argv: readonly string[]): [string, string | true][] {
  const read: [string, string | true][] = [];
  for (let at = 0; at < argv.length; at++) {
    const word = argv[at]!;
    expect(word.startsWith("--")).toBe(true);
    const equals = word.indexOf("=");
    if (equals >= 0) read.push([word.slice(2, equals), word.slice(equals + 1)]);
    else if (word === "--flag") read.push(["flag", true]);
    else {
      const value = argv[++at]!;
      expect(value.startsWith("-")).toBe(false);
      read.push([word.slice(2), value]);
    }
  }
  return read;
}

test("300 hostile values arrive at a real child as they were meant, in every style", () => {
  const parameters: Record<string, unknown> = { flag: true, off: false, none: null };
  for (const [at, value] of hostile.entries()) parameters[`p${at}`] = value;
  parameters["list"] = hostile;
  parameters["object"] = Object.fromEntries(hostile.map((value, at) => [`${at}${value}`, value]));
  for (const style of ["repeat", "json"] as const) {
    const read = readBack(
      runChild(argvOf(`${quote(process.execPath)} ${quote(join(folder, "print.cjs"))}`, parameters, style)),
    );
    expect(read[0]).toEqual(["flag", true]);
    expect(read.slice(1, 301)).toEqual(hostile.map((value, at) => [`p${at}`, value]));
    const list = read.filter(([name]) => name === "list").map(([, value]) => String(value));
    expect(style === "json" ? JSON.parse(list[0]!) : list).toEqual(hostile);
    expect(JSON.parse(String(read.at(-1)![1]))).toEqual(parameters["object"]);
  }
  const without = hostile.filter((value) => !value.includes(","));
  const [, joined] = readBack(
    runChild(argvOf(`${quote(process.execPath)} ${quote(join(folder, "print.cjs"))}`, { list: without })),
  )[0]!;
  expect(String(joined).split(",")).toEqual(without);
});

test("the values arrive unchanged one by one at a shell script too", () => {
  const script = join(folder, "print.sh");
  writeFileSync(script, `#!/bin/sh\nfor word in "$@"; do printf '%s\\0' "$word"; done\n`, { mode: 0o755 });
  for (const value of hostile.slice(0, pieces.length)) {
    const [file, ...rest] = argvOf(quote(script), { message: value });
    const words = execFileSync(file!, rest, { encoding: "utf8" }).split("\0").slice(0, -1);
    expect(readBack(words)).toEqual([["message", value]]);
  }
});

test("the largest argument that is let through is one the kernel takes", () => {
  const [file, ...rest] = argvOf(quote("/bin/true"), { m: "x".repeat(131_071), n: `-${"x".repeat(131_066)}` });
  expect(spawnSync(file!, rest).status).toBe(0);
});

function runChild([file, ...rest]: string[]): string[] {
  return JSON.parse(execFileSync(file!, rest, { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 })) as string[]; // our own script printed it
}

function quote(path: string): string {
  return `'${path}'`;
}
