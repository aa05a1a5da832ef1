import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { canRun, findSystemPrograms } from "./programs.mjs";
import { ordinaryUser } from "./user.mjs";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "drover-programs-"));
  chmodSync(folder, 0o755);
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(program: string, version: string, mode = 0o755): void {
  const path = join(folder, program);
  writeFileSync(path, `#!/bin/sh\necho "${program} (PostgreSQL) ${version}"\n`);
  chmodSync(path, mode);
}

it("takes the programs on PATH before all others, unless they are old, incomplete or not for the user", () => {
  const user = ordinaryUser();
  const found = (): string | null => findSystemPrograms(user, `relative:${folder}`);
  write("postgres", "16.2 (Debian)");
  expect(found()).not.toBe(folder);
  write("initdb", "16.2");
  expect(found()).toBe(folder);
  write("initdb", "9.6.24");
  expect(found()).not.toBe(folder);
  write("initdb", "18beta1");
  expect(found()).toBe(folder);
  chmodSync(folder, 0o700);
  expect(canRun(folder, user)).toBe(user === null);
});
