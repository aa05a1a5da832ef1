import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { canSwap, whileSwapping } from "../../../test/fixtures/execute/swap-paths.ts";
import { removeTree } from "./remove-tree.ts";

let directory: string;
let tree: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-remove-"));
  tree = join(directory, "tree");
  mkdirSync(tree);
});
afterEach(() => removeTree(tmpdir(), directory));

/** Creates nested directories as a program does, by changing into each of them. */
function createNested(depth: number, name: string): void {
  const step = `fs.mkdirSync(${JSON.stringify(name)}); process.chdir(${JSON.stringify(name)}); fs.writeFileSync("file", "");`;
  execFileSync(process.execPath, ["-e", `for (let index = 0; index < ${depth}; index += 1) { ${step} }`], {
    cwd: tree,
  });
}

test("removes directories nested deeper than the longest path", async () => {
  createNested(3000, "d");
  createNested(40, "n".repeat(250));
  await removeTree(directory, tree);
  expect(existsSync(tree)).toBe(false);
});

test("removes read-only directories and does not follow symlinks", async () => {
  const outside = join(directory, "outside");
  mkdirSync(outside);
  writeFileSync(join(outside, "kept"), "");
  mkdirSync(join(tree, "closed", "below"), { recursive: true });
  symlinkSync(outside, join(tree, "closed", "link"));
  chmodSync(join(tree, "closed"), 0o500);
  await removeTree(directory, tree);
  expect([existsSync(tree), existsSync(join(outside, "kept"))]).toEqual([false, true]);
});

/** A Perl script that nests directories deeper than the longest path. */
const nestScript = (name: string, each = ""): string => `for (1..600) { mkdir ${name}; ${each} chdir ${name} }`;
/** Perl scripts that create the leftovers of programs. */
const leftovers: Record<string, string> = {
  "deep directories beside names like those that Drover moves them to": `for (1..9) { mkdir ".removing-$_"; mkdir ".removing-$_/x" } ${nestScript('"deeper-and"')}`,
  "deep directories whose names are not UTF-8": nestScript('"\\xff\\xfe-deeper"'),
  "deep directories with a newline in their names": nestScript('"deeper\\nand"'),
  "many deep directories": `for my $n ("a".."e") { ${nestScript('"$n-deeper-and"')} chdir $ENV{TOP} }`,
  "deep directories without permissions": `${nestScript('"deeper-and"')} for (1..600) { chmod 0, "."; chdir ".." }`,
  "deep directories full of symlinks": nestScript('"deeper-and"', 'symlink "/", "root"; symlink "..", "up";'),
  "pipes, sockets and a device": `use IO::Socket::UNIX; system("mkfifo p"); chdir $ENV{TOP};
    IO::Socket::UNIX->new(Project => "s", Listen => 1); system("mknod c c 1 3 2>/dev/null")`,
  "thousands of files": 'for (1..3000) { open(my $f, ">", "f$_"); close $f }',
  "unreadable files in read-only directories":
    'mkdir "a"; open(my $f, ">", "a/f"); close $f; chmod 0, "a/f"; chmod 0555, "a"',
  "names like options and patterns": 'mkdir $_ for "-rf", "*", "~", "\\$(x)", " ", "\\\\", "...", "-"',
  "hard links to one file": 'open(my $f, ">", "f"); close $f; link "f", "l$_" for 1..500',
};
test.each(Object.entries(leftovers))("removes %s", async (_, script) => {
  execFileSync("perl", ["-e", script], { cwd: tree, env: { ...process.env, TOP: tree }, stdio: "ignore" });
  await removeTree(directory, tree);
  expect(existsSync(tree)).toBe(false);
});

describe.skipIf(!canSwap)("while another process swaps a directory for a symlink", () => {
  const files = Array.from({ length: 100 }, (_, index) => `f${index}`);
  /** Has the same names as the tree, so that a path through the symlink leads to an existing file. */
  const fill = (path: string): void => {
    for (const below of ["", "in", "in/in"]) {
      mkdirSync(join(path, below), { recursive: true });
      for (const name of files) writeFileSync(join(path, below, name), "");
    }
  };
  const count = (path: string): number => readdirSync(path, { recursive: true }).length;

  test.each([
    ["in the tree", "above/tree/in", "outside/tree/in"],
    ["that is the tree", "above/tree", "outside/tree"],
    ["above the tree", "above", "outside"],
  ])("removes nothing outside: a directory %s", async (_, swapped, target) => {
    const outside = join(directory, "outside", "tree");
    fill(outside);
    const mode = 0o500;
    chmodSync(join(outside, "in", "in"), mode);
    const before = count(outside);
    const link = join(directory, "link");
    for (let round = 0; round < 5; round += 1) {
      await removeTree(directory, join(directory, "above"));
      fill(join(directory, "above", "tree"));
      rmSync(link, { recursive: true, force: true });
      symlinkSync(join(directory, target), link);
      await whileSwapping(join(directory, swapped), link, () =>
        // May be refused while the symlink is in the way.
        removeTree(directory, join(directory, "above", "tree")).catch(() => undefined),
      );
      expect(count(outside)).toBe(before);
      expect(lstatSync(join(outside, "in", "in")).mode & 0o777).toBe(mode);
    }
  });
});

test("removes as much as it can, and names the entries that it cannot remove", async ({ skip }) => {
  mkdirSync(join(tree, "in", "deep"), { recursive: true });
  for (const name of ["in/stuck", "in/deep/file", "file"]) writeFileSync(join(tree, name), "");
  const stuck = join(tree, "in", "stuck");
  if (spawnSync("chattr", ["+i", stuck]).status !== 0) return skip();
  try {
    await expect(removeTree(directory, tree)).rejects.toThrow(`${stuck} cannot be removed: EPERM`);
    expect(readdirSync(tree, { recursive: true }).sort()).toEqual(["in", "in/stuck"]);
  } finally {
    spawnSync("chattr", ["-i", stuck]);
  }
});
