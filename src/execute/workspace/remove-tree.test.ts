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
