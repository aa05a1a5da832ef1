import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { canRun, findSystemPrograms } from "./programs.mjs";
import { findOrdinaryUser } from "./user.mjs";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-programs-"));
  chmodSync(directory, 0o755);
});
afterEach(() => rmSync(directory, { recursive: true }));

function write(program: string, version: string, mode = 0o755): void {
  const path = join(directory, program);
  writeFileSync(path, `#!/bin/sh\necho "${program} (PostgreSQL) ${version}"\n`);
  chmodSync(path, mode);
}

it("prefers the programs on PATH, unless they are old, incomplete or not accessible to the user", () => {
  const user = findOrdinaryUser();
  const find = (): string | null => findSystemPrograms(user, `relative:${directory}`);
  write("postgres", "16.2 (Debian)");
  expect(find()).not.toBe(directory);
  write("initdb", "16.2");
  expect(find()).toBe(directory);
  write("initdb", "9.6.24");
  expect(find()).not.toBe(directory);
  write("initdb", "18beta1");
  expect(find()).toBe(directory);
  chmodSync(directory, 0o700);
  expect(canRun(directory, user)).toBe(user === null);
});
