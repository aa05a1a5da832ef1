import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { canSwap, whileSwapping } from "../../../test/fixtures/execute/swap-paths.ts";
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

/** Resolves in the same turn, so that the test continues before anything else is copied. */
async function waitUntil(condition: () => boolean): Promise<void> {
  while (!condition()) await new Promise((resolve) => setImmediate(resolve));
}

test("skips files that vanish during the copy", async () => {
  const copyResult = copyDirectory(
    directory,
    join(directory, "from"),
    join(directory, "to"),
    new AbortController().signal,
  );
  await waitUntil(() => existsSync(join(directory, "to.copy", "in", names[3]!)));
  for (const name of names.slice(100)) rmSync(join(directory, "from", "in", name));
  expect(await copyResult).toBe(true);
  expect(readdirSync(join(directory, "to"))).toEqual(["in", "stays"]);
  const copied = readdirSync(join(directory, "to", "in"));
  expect(copied).toEqual(expect.arrayContaining(names.slice(0, 100)));
  expect(copied.length).toBeLessThan(names.length);
  expect(readdirSync(directory).sort()).toEqual(["from", "to"]);
});

test("stops copying at once and leaves nothing behind", async () => {
  const abort = new AbortController();
  const copyResult = copyDirectory(directory, join(directory, "from"), join(directory, "to"), abort.signal);
  await waitUntil(() => existsSync(join(directory, "to.copy", "in", names[3]!)));
  abort.abort("user");
  const progress = { copying: true, whole: false };
  void copyResult.finally(() => (progress.copying = false));
  await waitUntil(() => {
    progress.whole ||= existsSync(join(directory, "to.copy", "in", names.at(-1)!));
    return !progress.copying;
  });
  expect(await copyResult).toBe(false);
  expect(progress.whole).toBe(false);
  expect(readdirSync(directory)).toEqual(["from"]);
});

test("leaves nothing behind if it is stopped while the complete copy is renamed", async () => {
  const to = join(directory, "to");
  const stopsAtRename = {
    get aborted() {
      return existsSync(to);
    },
  };
  // Only `aborted` is read.
  expect(await copyDirectory(directory, join(directory, "from"), to, stopsAtRename as AbortSignal)).toBe(false);
  expect(readdirSync(directory)).toEqual(["from"]);
});

test("copies modes, symlinks and names that are not UTF-8", async () => {
  const from = join(directory, "from");
  rmSync(join(from, "in"), { recursive: true });
  mkdirSync(join(from, "closed", "below"), { recursive: true });
  writeFileSync(join(from, "closed", "program"), "#!/bin/sh\n", { mode: 0o755 });
  symlinkSync("../nowhere", join(from, "closed", "link"));
  const invalidName = Buffer.from("odd-\xff", "latin1");
  writeFileSync(Buffer.concat([Buffer.from(`${from}/closed/below/`), invalidName]), "odd");
  chmodSync(join(from, "closed"), 0o555);
  const to = join(directory, "to");
  expect(await copyDirectory(directory, from, to, new AbortController().signal)).toBe(true);
  const readMode = (name: string): number => lstatSync(join(to, "closed", name)).mode & 0o777;
  expect([readMode(""), readMode("below"), readMode("program")]).toEqual([0o555, 0o755, 0o755]);
  expect(readlinkSync(join(to, "closed", "link"))).toBe("../nowhere");
  expect(readdirSync(join(to, "closed", "below"), { encoding: "buffer" })).toEqual([invalidName]);
  for (const path of [from, to]) chmodSync(join(path, "closed"), 0o755);
});

describe.skipIf(!canSwap)("while another process swaps a directory for a symlink", () => {
  const outside = (): string => join(directory, "outside");
  beforeEach(() => {
    mkdirSync(outside());
    // The same names, so that a path through the symlink leads to an existing file.
    for (const name of names.slice(0, 300)) writeFileSync(join(outside(), name), "outside");
  });

  test("copies nothing from outside", async () => {
    symlinkSync(outside(), join(directory, "link"));
    const from = join(directory, "from");
    await whileSwapping(join(from, "in"), join(directory, "link"), async () => {
      for (let round = 0; round < 3; round += 1) {
        const to = join(directory, `to${round}`);
        await copyDirectory(directory, from, to, new AbortController().signal);
        const copied = readdirSync(to, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
        for (const { parentPath, name } of copied)
          expect(readFileSync(join(parentPath, name), "utf8")).not.toBe("outside");
      }
    });
  });

  test("writes nothing outside", async () => {
    symlinkSync(outside(), join(directory, "link"));
    const before = readdirSync(outside());
    await whileSwapping(join(directory, "to.copy", "in"), join(directory, "link"), async () => {
      for (let round = 0; round < 3; round += 1)
        // May be refused, because the other process puts the symlink where a directory is needed.
        await copyDirectory(
          directory,
          join(directory, "from"),
          join(directory, "to"),
          new AbortController().signal,
        ).catch(() => undefined);
    });
    expect(readdirSync(outside())).toEqual(before);
    for (const name of before) expect(readFileSync(join(outside(), name), "utf8")).toBe("outside");
  });
});
