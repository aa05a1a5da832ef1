import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { copyDirectory } from "./copy-directory.ts";

let folder: string;
const names = Array.from({ length: 400 }, (_, index) => `f${String(index).padStart(4, "0")}`);
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "drover-copy-"));
  mkdirSync(join(folder, "from", "in"), { recursive: true });
  for (const name of names) writeFileSync(join(folder, "from", "in", name), name);
  writeFileSync(join(folder, "from", "stays"), "here");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Resolves in the turn in which it is there: what is done next comes before anything else is copied. */
async function until(isThere: () => boolean): Promise<void> {
  while (!isThere()) await new Promise((resolve) => setImmediate(resolve));
}

test("what vanishes while it is copied is left out", async () => {
  const copying = copyDirectory(join(folder, "from"), join(folder, "to"), new AbortController().signal);
  await until(() => existsSync(join(folder, "to.copy", "in", names[3]!)));
  for (const name of names.slice(100)) rmSync(join(folder, "from", "in", name));
  expect(await copying).toBe(true);
  expect(readdirSync(join(folder, "to"))).toEqual(["in", "stays"]);
  const copied = readdirSync(join(folder, "to", "in"));
  expect(copied).toEqual(expect.arrayContaining(names.slice(0, 100)));
  expect(copied.length).toBeLessThan(names.length);
  expect(readdirSync(folder).sort()).toEqual(["from", "to"]);
});

test("a copy that is stopped ends there, and leaves nothing behind", async () => {
  const stopping = new AbortController();
  const copying = copyDirectory(join(folder, "from"), join(folder, "to"), stopping.signal);
  await until(() => existsSync(join(folder, "to.copy", "in", names[3]!)));
  stopping.abort("user");
  const ended = { copying: true, whole: false };
  void copying.finally(() => (ended.copying = false));
  await until(() => {
    ended.whole ||= existsSync(join(folder, "to.copy", "in", names.at(-1)!));
    return !ended.copying;
  });
  expect(await copying).toBe(false);
  expect(ended.whole).toBe(false);
  expect(readdirSync(folder)).toEqual(["from"]);
});
