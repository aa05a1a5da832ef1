import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { copyDirectory } from "./copy-directory.ts";

let directory: string;
const names = Array.from({ length: 400 }, (_, index) => `f${String(index).padStart(4, "0")}`);
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "drover-copy-"));
  mkdirSync(join(directory, "from", "in"), { recursive: true });
  for (const name of names) writeFileSync(join(directory, "from", "in", name), name);
  writeFileSync(join(directory, "from", "stays"), "here");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

/** Resolves in the same turn, so that the test acts before anything else is copied. */
async function until(isThere: () => boolean): Promise<void> {
  while (!isThere()) await new Promise((resolve) => setImmediate(resolve));
}

test("leaves out files that vanish during the copy", async () => {
  const copying = copyDirectory(join(directory, "from"), join(directory, "to"), new AbortController().signal);
  await until(() => existsSync(join(directory, "to.copy", "in", names[3]!)));
  for (const name of names.slice(100)) rmSync(join(directory, "from", "in", name));
  expect(await copying).toBe(true);
  expect(readdirSync(join(directory, "to"))).toEqual(["in", "stays"]);
  const copied = readdirSync(join(directory, "to", "in"));
  expect(copied).toEqual(expect.arrayContaining(names.slice(0, 100)));
  expect(copied.length).toBeLessThan(names.length);
  expect(readdirSync(directory).sort()).toEqual(["from", "to"]);
});

test("stops copying at once and leaves nothing behind", async () => {
  const stopping = new AbortController();
  const copying = copyDirectory(join(directory, "from"), join(directory, "to"), stopping.signal);
  await until(() => existsSync(join(directory, "to.copy", "in", names[3]!)));
  stopping.abort("user");
  const ended = { copying: true, whole: false };
  void copying.finally(() => (ended.copying = false));
  await until(() => {
    ended.whole ||= existsSync(join(directory, "to.copy", "in", names.at(-1)!));
    return !ended.copying;
  });
  expect(await copying).toBe(false);
  expect(ended.whole).toBe(false);
  expect(readdirSync(directory)).toEqual(["from"]);
});
