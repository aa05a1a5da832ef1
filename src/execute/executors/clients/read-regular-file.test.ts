import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTurn } from "./fixtures/turns.ts";
import { gemini } from "./gemini.ts";
import { readRegularFile } from "./read-regular-file.ts";

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-regular-file-"));
  for (const name of ["operator-home", "work", "tmp"]) mkdirSync(join(directory, name));
  mkdirSync(join(directory, "session-home", ".gemini"), { recursive: true });
  path = join(directory, "session-home", ".gemini", "settings.json");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const replacements: Readonly<Record<string, () => void>> = {
  "a pipe": () => execFileSync("mkfifo", [path]),
  "a link": () => {
    writeFileSync(join(directory, "elsewhere"), "{}");
    symlinkSync(join(directory, "elsewhere"), path);
  },
  "a directory": () => mkdirSync(path),
  "too large": () => writeFileSync(path, "{}".padEnd(1024 * 1024 + 1)),
};

test.each(Object.keys(replacements))(
  "refuses settings that are %s instead of blocking on them",
  async (what) => {
    replacements[what]?.();
    const dirs = {
      homeDir: join(directory, "session-home"),
      workDir: join(directory, "work"),
      tmpDir: join(directory, "tmp"),
    };
    const prepared = (async () =>
      gemini.definition.prepare(createTurn({ ...dirs, env: { HOME: join(directory, "operator-home") } })))();
    await expect(prepared).rejects.toMatchObject({ reason: "refused" });
  },
  10_000,
);

test("reads a whole file and returns null for a missing one", async () => {
  expect(await readRegularFile(directory, "session-home/.gemini/settings.json", 10)).toBeNull();
  writeFileSync(path, "0123456789");
  expect(await readRegularFile(directory, "session-home/.gemini/settings.json", 10)).toBe("0123456789");
});
