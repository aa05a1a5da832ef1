import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { removePartial, writeBackup } from "./backup-file.ts";

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "drover-backup-"));
  file = join(folder, "copy");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));
const inFolder = () => readdirSync(folder).sort();

it("never gives its name to one while another has it, however late that came", async () => {
  const writing = writeBackup(file, async (part) => {
    writeFileSync(part, "mine");
    writeFileSync(file, "another's");
  });
  await expect(writing).rejects.toThrow("already exists");
  expect(readFileSync(file, "utf8")).toBe("another's");
  expect(inFolder()).toEqual(["copy"]);
});

it("leaves alone what another process is writing for the same name", async () => {
  writeFileSync(`${file}.0123abcd.part`, "another's");
  await writeBackup(file, async (part) => {
    expect(basename(part)).toMatch(/^copy\.[0-9a-f]+\.part$/);
    expect(statSync(part).mode & 0o777).toBe(0o600);
    writeFileSync(part, "mine");
  });
  removePartial(file);
  expect(inFolder()).toEqual(["copy", "copy.0123abcd.part"]);
  expect(readFileSync(file, "utf8")).toBe("mine");
});

it("writes one of two that are asked for at once, whole", async () => {
  let goOn!: () => void;
  const paused = new Promise<void>((resolve) => (goOn = resolve));
  const first = writeBackup(file, async (part) => {
    writeFileSync(part, "first, ");
    await paused;
    writeFileSync(part, "whole", { flag: "a" });
    return "first";
  });
  const second = writeBackup(file, async (part) => writeFileSync(part, "second"));
  await expect(second).rejects.toThrow("already exists");
  goOn();
  expect(await first).toBe("first");
  expect(readFileSync(file, "utf8")).toBe("first, whole");
  expect(inFolder()).toEqual(["copy"]);
});

it("takes away what it has written where it is told to end", async () => {
  let seen: string[] = [];
  const writing = writeBackup(file, async (part) => {
    writeFileSync(`${part}-journal`, "");
    removePartial(file);
    seen = inFolder();
    throw new Error("told to end");
  });
  await expect(writing).rejects.toThrow("told to end");
  expect(seen).toEqual([]);
});
