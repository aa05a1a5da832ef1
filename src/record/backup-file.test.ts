import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { removePartial, writeBackup } from "./backup-file.ts";

let root: string;
let file: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "drover-backup-"));
  file = join(root, "copy");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));
const listRoot = () => readdirSync(root).sort();

it("never replaces a file that was created while the backup was being written", async () => {
  const writing = writeBackup(file, async (part) => {
    writeFileSync(part, "this backup");
    writeFileSync(file, "another backup");
  });
  await expect(writing).rejects.toThrow("already exists");
  expect(readFileSync(file, "utf8")).toBe("another backup");
  expect(listRoot()).toEqual(["copy"]);
});

it("does not touch another process's partial file of the same backup", async () => {
  writeFileSync(`${file}.0123abcd.part`, "another backup");
  await writeBackup(file, async (part) => {
    expect(basename(part)).toMatch(/^copy\.[0-9a-f]+\.part$/);
    expect(statSync(part).mode & 0o777).toBe(0o600);
    writeFileSync(part, "this backup");
  });
  removePartial(file);
  expect(listRoot()).toEqual(["copy", "copy.0123abcd.part"]);
  expect(readFileSync(file, "utf8")).toBe("this backup");
});

it("completes exactly one of two simultaneous backups to the same name", async () => {
  let resume!: () => void;
  const paused = new Promise<void>((resolve) => (resume = resolve));
  const first = writeBackup(file, async (part) => {
    writeFileSync(part, "first, ");
    await paused;
    writeFileSync(part, "whole", { flag: "a" });
    return "first";
  });
  const second = writeBackup(file, async (part) => writeFileSync(part, "second"));
  await expect(second).rejects.toThrow("already exists");
  resume();
  expect(await first).toBe("first");
  expect(readFileSync(file, "utf8")).toBe("first, whole");
  expect(listRoot()).toEqual(["copy"]);
});

it("removePartial removes the partial file and SQLite's journal", async () => {
  let seen: string[] = [];
  const writing = writeBackup(file, async (part) => {
    writeFileSync(`${part}-journal`, "");
    removePartial(file);
    seen = listRoot();
    throw new Error("aborted");
  });
  await expect(writing).rejects.toThrow("aborted");
  expect(seen).toEqual([]);
});
