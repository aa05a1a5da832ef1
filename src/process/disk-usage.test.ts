import { spawn } from "node:child_process";
import { once } from "node:events";
import { linkSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import type { DiskUsage } from "../model/process.ts";
import { measureDiskUsage, type MeasureOptions } from "./disk-usage.ts";

const testRoot = mkdtempSync(join(tmpdir(), "drover-usage-"));
afterAll(() => rmSync(testRoot, { recursive: true, force: true }));
let directory = "";
beforeEach(() => (directory = mkdtempSync(join(testRoot, "d-"))));

const measure = (roots: readonly string[], overrides: Partial<MeasureOptions> = {}): Promise<DiskUsage> =>
  measureDiskUsage({
    roots,
    excluded: [],
    withBytes: true,
    isEnough: () => false,
    signal: new AbortController().signal,
    ...overrides,
  });
const allocatedBytes = (path: string): number => statSync(path).blocks * 512;
/** Content that every file system stores in allocated blocks. */
const content = Buffer.alloc(100_000, "x");

function fill(target: string, names: readonly string[]): void {
  mkdirSync(target, { recursive: true });
  for (const name of names) writeFileSync(join(target, name), content);
}

test("counts files, directories and links, and the blocks allocated for them", async () => {
  fill(join(directory, "a", "b"), ["1", "2"]);
  fill(directory, ["3"]);
  symlinkSync("3", join(directory, "link"));
  const usage = await measure([directory]);
  expect(usage.files).toBe(6);
  const directories = [directory, join(directory, "a"), join(directory, "a", "b")].map(allocatedBytes);
  const files = ["a/b/1", "a/b/2", "3"].map((name) => allocatedBytes(join(directory, name)));
  expect(usage.bytes).toBe([...directories, ...files].reduce((sum, bytes) => sum + bytes, 0));
  expect(usage.bytes).toBeGreaterThanOrEqual(3 * content.length);
  expect(await measure([directory], { withBytes: false })).toEqual({ bytes: 0, files: 6 });
});

test("counts almost nothing for a sparse file", async () => {
  writeFileSync(join(directory, "holes"), "");
  truncateSync(join(directory, "holes"), 1 << 30);
  expect((await measure([directory])).bytes).toBeLessThan(1 << 20);
});

test("does not follow links, and counts the bytes of a hard-linked file once", async () => {
  const elsewhere = mkdtempSync(join(testRoot, "e-"));
  fill(elsewhere, ["1", "2", "3"]);
  symlinkSync(elsewhere, join(directory, "away"));
  symlinkSync(".", join(directory, "round"));
  fill(directory, ["file"]);
  const before = await measure([directory]);
  linkSync(join(directory, "file"), join(directory, "again"));
  const after = await measure([directory]);
  expect([before.files, after.files]).toEqual([3, 4]);
  expect(after.bytes).toBe(before.bytes);
});

test("skips excluded directories, and counts repeated or nested roots once", async () => {
  fill(join(directory, "own"), ["1", "2"]);
  fill(join(directory, "rest"), ["3"]);
  const link = join(testRoot, "other-name");
  symlinkSync(directory, link);
  const rest =
    allocatedBytes(directory) + allocatedBytes(join(directory, "rest")) + allocatedBytes(join(directory, "rest", "3"));
  expect(await measure([directory], { excluded: [join(link, "own")] })).toEqual({ bytes: rest, files: 2 });
  expect(await measure([directory, directory, link, join(directory, "own")])).toMatchObject({ files: 4 });
});

test("counts files whose names are not valid text", async () => {
  writeFileSync(Buffer.concat([Buffer.from(`${directory}/`), Buffer.from([0xff, 0xfe])]), content);
  const unnamed = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from([0xe9])]);
  mkdirSync(unnamed);
  writeFileSync(Buffer.concat([unnamed, Buffer.from("/file")]), content);
  const usage = await measure([directory]);
  expect(usage.files).toBe(3);
  expect(usage.bytes).toBeGreaterThanOrEqual(2 * content.length);
});

const [dev, shm] = ["/dev", "/dev/shm"].map((path) => statSync(path, { throwIfNoEntry: false })?.dev);
if (shm !== undefined && shm !== dev) {
  test("does not enter another file system", async () => {
    const inside = mkdtempSync("/dev/shm/drover-usage-");
    try {
      const before = await measure(["/dev"], { withBytes: false });
      for (let index = 0; index < 300; index += 1) writeFileSync(join(inside, String(index)), "");
      // Other processes create and remove devices during the test, but not hundreds.
      expect((await measure(["/dev"], { withBytes: false })).files).toBeLessThan(before.files + 200);
    } finally {
      rmSync(inside, { recursive: true });
    }
  });
}

test("counts nothing for a missing directory", async () => {
  expect(await measure([join(directory, "none")])).toEqual({ bytes: 0, files: 0 });
});

test("ends the walk soon after isEnough returns true or the signal aborts", async () => {
  const names = Array.from({ length: 2000 }, (_, index) => String(index));
  for (const name of names) writeFileSync(join(directory, name), "");
  const partial = await measure([directory], { isEnough: ({ files }) => files > 100 });
  expect(partial.files).toBeGreaterThan(100);
  expect(partial.files).toBeLessThan(300);
  const controller = new AbortController();
  const stopped = await measure([directory], {
    signal: controller.signal,
    isEnough: ({ files }) => {
      if (files > 500) controller.abort();
      return false;
    },
  });
  expect(stopped.files).toBeLessThan(1000);
});

test("yields to the event loop after every few hundred entries of a large directory", async () => {
  for (let index = 0; index < 2560; index += 1) writeFileSync(join(directory, String(index)), "");
  let counted = 0;
  let countedAtLastTick = 0;
  let maxPerTick = 0;
  let isDone = false;
  const onTick = (): void => {
    maxPerTick = Math.max(maxPerTick, counted - countedAtLastTick);
    countedAtLastTick = counted;
    if (!isDone) setImmediate(onTick);
  };
  onTick();
  const isEnough = ({ files }: DiskUsage): boolean => {
    counted = files;
    return false;
  };
  expect((await measure([directory], { isEnough })).files).toBe(2560);
  isDone = true;
  expect(maxPerTick).toBeGreaterThan(0);
  expect(maxPerTick).toBeLessThanOrEqual(512);
});

test("tolerates entries that appear and vanish during the walk", async () => {
  const script =
    'while :; do mkdir -p a/b c; echo > a/b/1; echo > c/2; mv a/b c/b; ln -s /etc a/b; rm -rf a c; done 2> "/dev/null"';
  // All these processes hold the pipe, so it closes when the last one has ended.
  const child = spawn("sh", ["-c", script], { cwd: directory, stdio: ["ignore", "pipe", "ignore"], detached: true });
  try {
    let counted = 0;
    for (let index = 0; index < 300 || counted === 0; index += 1) counted += (await measure([directory])).files;
    expect(counted).toBeGreaterThan(0);
  } finally {
    child.stdout.resume();
    process.kill(-child.pid!, "SIGKILL");
    await once(child, "close");
  }
});
