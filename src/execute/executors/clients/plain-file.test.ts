import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { turnOf } from "./fixtures/turns.ts";
import { gemini } from "./gemini.ts";
import { readPlainFile } from "./plain-file.ts";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "drover-plain-file-"));
  for (const name of ["theirs", "work", "tmp"]) mkdirSync(join(folder, name));
  mkdirSync(join(folder, "ours", ".gemini"), { recursive: true });
  path = join(folder, "ours", ".gemini", "settings.json");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const others: Readonly<Record<string, () => void>> = {
  "a pipe": () => execFileSync("mkfifo", [path]),
  "a link": () => {
    writeFileSync(join(folder, "elsewhere"), "{}");
    symlinkSync(join(folder, "elsewhere"), path);
  },
  "a folder": () => mkdirSync(path),
  "a file without end": () => writeFileSync(path, "{}".padEnd(1024 * 1024 + 1)),
};

test.each(Object.keys(others))(
  "settings that are %s are refused, not waited for",
  async (what) => {
    others[what]?.();
    const dirs = { homeDir: join(folder, "ours"), workDir: join(folder, "work"), tmpDir: join(folder, "tmp") };
    const prepared = (async () =>
      gemini.definition.prepare(turnOf({ ...dirs, env: { HOME: join(folder, "theirs") } })))();
    await expect(prepared).rejects.toMatchObject({ reason: "refused" });
  },
  10_000,
);

test("a file is read whole, and one that is not there is none", async () => {
  expect(await readPlainFile(path, 10)).toBeNull();
  writeFileSync(path, "0123456789");
  expect(await readPlainFile(path, 10)).toBe("0123456789");
});
