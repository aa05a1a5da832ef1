import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { writePrivate } from "./write-private.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "drover-private-"));
  for (const name of ["tmp", "outside"]) mkdirSync(join(root, name));
  writeFileSync(join(root, "outside", "kept"), "as it was");
});
afterEach(() => rmSync(root, { recursive: true }));

test("writes a file that only its owner may read, replacing one of an earlier turn", async () => {
  for (const text of ["first", "second"]) {
    const path = await writePrivate(join(root, "tmp"), "mcp.json", text);
    expect([readFileSync(path, "utf8"), statSync(path).mode & 0o777]).toEqual([text, 0o600]);
  }
});

test("replaces a link at its path and leaves the link's target unchanged", async () => {
  symlinkSync(join(root, "outside", "kept"), join(root, "tmp", "mcp.json"));
  await writePrivate(join(root, "tmp"), "mcp.json", "ours");
  expect(readFileSync(join(root, "tmp", "mcp.json"), "utf8")).toBe("ours");
  expect(readFileSync(join(root, "outside", "kept"), "utf8")).toBe("as it was");
});

test("refuses a directory that is a link", async () => {
  symlinkSync(join(root, "outside"), join(root, "link"));
  await expect(writePrivate(join(root, "link"), "mcp.json", "ours")).rejects.toThrow();
  expect(readdirSync(join(root, "outside"))).toEqual(["kept"]);
});
