import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { removeTree } from "./remove-tree.ts";

let folder: string;
let tree: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "drover-remove-"));
  tree = join(folder, "tree");
  mkdirSync(tree);
});
afterEach(() => removeTree(folder));

/** As a program does it: by going into each folder it has made. */
function nest(depth: number, name: string): void {
  const step = `fs.mkdirSync(${JSON.stringify(name)}); process.chdir(${JSON.stringify(name)}); fs.writeFileSync("file", "");`;
  execFileSync(process.execPath, ["-e", `for (let at = 0; at < ${depth}; at += 1) { ${step} }`], { cwd: tree });
}

test("removes folders that are nested deeper than a path can name", async () => {
  nest(3000, "d");
  nest(40, "n".repeat(250));
  await removeTree(tree);
  expect(existsSync(tree)).toBe(false);
});

test("removes what its owner may not write to, and follows no link", async () => {
  const outside = join(folder, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "kept"), "");
  mkdirSync(join(tree, "closed", "below"), { recursive: true });
  symlinkSync(outside, join(tree, "closed", "link"));
  chmodSync(join(tree, "closed"), 0o500);
  await removeTree(tree);
  expect([existsSync(tree), existsSync(join(outside, "kept"))]).toEqual([false, true]);
});

/** Folders in each other, so deep that no path can name the last of them. */
const deep = (name: string, each = ""): string => `for (1..600) { mkdir ${name}; ${each} chdir ${name} }`;
/** What programs leave behind, in words of perl. */
const left: Record<string, string> = {
  "deep folders beside names like those that Drover moves them to": `for (1..9) { mkdir ".removing-$_"; mkdir ".removing-$_/x" } ${deep('"deeper-and"')}`,
  "deep folders whose names are no text": deep('"\\xff\\xfe-deeper"'),
  "deep folders with a line end in their names": deep('"deeper\\nand"'),
  "many deep folders": `for my $n ("a".."e") { ${deep('"$n-deeper-and"')} chdir $ENV{TOP} }`,
  "deep folders that nobody may enter": `${deep('"deeper-and"')} for (1..600) { chmod 0, "."; chdir ".." }`,
  "deep folders full of links": deep('"deeper-and"', 'symlink "/", "root"; symlink "..", "up";'),
  "pipes, sockets and a device": `use IO::Socket::UNIX; system("mkfifo p"); chdir $ENV{TOP};
    IO::Socket::UNIX->new(Local => "s", Listen => 1); system("mknod c c 1 3 2>/dev/null")`,
  "thousands of files": 'for (1..3000) { open(my $f, ">", "f$_"); close $f }',
  "files that nobody may read, in folders that nobody may write to":
    'mkdir "a"; open(my $f, ">", "a/f"); close $f; chmod 0, "a/f"; chmod 0555, "a"',
  "names like options and patterns": 'mkdir $_ for "-rf", "*", "~", "\\$(x)", " ", "\\\\", "...", "-"',
  "hard links to one file": 'open(my $f, ">", "f"); close $f; link "f", "l$_" for 1..500',
};
test.each(Object.entries(left))("removes %s", async (_, script) => {
  execFileSync("perl", ["-e", script], { cwd: tree, env: { ...process.env, TOP: tree }, stdio: "ignore" });
  await removeTree(tree);
  expect(existsSync(tree)).toBe(false);
});
