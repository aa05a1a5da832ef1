import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { removeTree } from "./remove-tree.ts";

let directory: string;
let tree: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-remove-"));
  tree = join(directory, "tree");
  mkdirSync(tree);
});
afterEach(() => removeTree(directory));

/** Creates nested directories as a program does, by changing into each of them. */
function nest(depth: number, name: string): void {
  const step = `fs.mkdirSync(${JSON.stringify(name)}); process.chdir(${JSON.stringify(name)}); fs.writeFileSync("file", "");`;
  execFileSync(process.execPath, ["-e", `for (let at = 0; at < ${depth}; at += 1) { ${step} }`], { cwd: tree });
}

test("removes directories nested deeper than the longest path", async () => {
  nest(3000, "d");
  nest(40, "n".repeat(250));
  await removeTree(tree);
  expect(existsSync(tree)).toBe(false);
});

test("removes read-only directories, and follows no symlink", async () => {
  const outside = join(directory, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "kept"), "");
  mkdirSync(join(tree, "closed", "below"), { recursive: true });
  symlinkSync(outside, join(tree, "closed", "link"));
  chmodSync(join(tree, "closed"), 0o500);
  await removeTree(tree);
  expect([existsSync(tree), existsSync(join(outside, "kept"))]).toEqual([false, true]);
});

/** A Perl script that nests directories deeper than the longest path. */
const deep = (name: string, each = ""): string => `for (1..600) { mkdir ${name}; ${each} chdir ${name} }`;
/** Perl scripts that create what programs leave behind. */
const left: Record<string, string> = {
  "deep directories beside names like those that Drover moves them to": `for (1..9) { mkdir ".removing-$_"; mkdir ".removing-$_/x" } ${deep('"deeper-and"')}`,
  "deep directories whose names are not UTF-8": deep('"\\xff\\xfe-deeper"'),
  "deep directories with a newline in their names": deep('"deeper\\nand"'),
  "many deep directories": `for my $n ("a".."e") { ${deep('"$n-deeper-and"')} chdir $ENV{TOP} }`,
  "deep directories without permissions": `${deep('"deeper-and"')} for (1..600) { chmod 0, "."; chdir ".." }`,
  "deep directories full of symlinks": deep('"deeper-and"', 'symlink "/", "root"; symlink "..", "up";'),
  "pipes, sockets and a device": `use IO::Socket::UNIX; system("mkfifo p"); chdir $ENV{TOP};
    IO::Socket::UNIX->new(Local => "s", Listen => 1); system("mknod c c 1 3 2>/dev/null")`,
  "thousands of files": 'for (1..3000) { open(my $f, ">", "f$_"); close $f }',
  "unreadable files in read-only directories":
    'mkdir "a"; open(my $f, ">", "a/f"); close $f; chmod 0, "a/f"; chmod 0555, "a"',
  "names like options and patterns": 'mkdir $_ for "-rf", "*", "~", "\\$(x)", " ", "\\\\", "...", "-"',
  "hard links to one file": 'open(my $f, ">", "f"); close $f; link "f", "l$_" for 1..500',
};
test.each(Object.entries(left))("removes %s", async (_, script) => {
  execFileSync("perl", ["-e", script], { cwd: tree, env: { ...process.env, TOP: tree }, stdio: "ignore" });
  await removeTree(tree);
  expect(existsSync(tree)).toBe(false);
});
