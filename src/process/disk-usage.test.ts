import { spawn } from "node:child_process";
import { once } from "node:events";
import { linkSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, expect, test } from "vitest";
import type { DiskUsage } from "../model/process.ts";
import { measureDiskUsage, type MeasureOptions } from "./disk-usage.ts";

const all = mkdtempSync(join(tmpdir(), "drover-held-"));
afterAll(() => rmSync(all, { recursive: true, force: true }));
let directory = "";
beforeEach(() => (directory = mkdtempSync(join(all, "d-"))));

const count = (roots: readonly string[], more: Partial<MeasureOptions> = {}): Promise<DiskUsage> =>
  measureDiskUsage({
    roots,
    except: [],
    withBytes: true,
    isEnough: () => false,
    signal: new AbortController().signal,
    ...more,
  });
const bytesOf = (path: string): number => statSync(path).blocks * 512;
/** Content that no file system stores without giving room for it. */
const content = Buffer.alloc(100_000, "x");

function fill(folder: string, names: readonly string[]): void {
  mkdirSync(folder, { recursive: true });
  for (const name of names) writeFileSync(join(folder, name), content);
}

test("files, folders and links count as names, and their bytes as the file system gives them out", async () => {
  fill(join(directory, "a", "b"), ["1", "2"]);
  fill(directory, ["3"]);
  symlinkSync("3", join(directory, "link"));
  const held = await count([directory]);
  expect(held.files).toBe(6);
  const folders = [directory, join(directory, "a"), join(directory, "a", "b")].map(bytesOf);
  const files = ["a/b/1", "a/b/2", "3"].map((name) => bytesOf(join(directory, name)));
  expect(held.bytes).toBe([...folders, ...files].reduce((sum, bytes) => sum + bytes, 0));
  expect(held.bytes).toBeGreaterThanOrEqual(3 * content.length);
  expect(await count([directory], { withBytes: false })).toEqual({ bytes: 0, files: 6 });
});

test("a file that is all holes holds next to nothing", async () => {
  writeFileSync(join(directory, "holes"), "");
  truncateSync(join(directory, "holes"), 1 << 30);
  expect((await count([directory])).bytes).toBeLessThan(1 << 20);
});

test("no link is followed, and a file with two names holds its bytes once", async () => {
  const elsewhere = mkdtempSync(join(all, "e-"));
  fill(elsewhere, ["1", "2", "3"]);
  symlinkSync(elsewhere, join(directory, "away"));
  symlinkSync(".", join(directory, "round"));
  fill(directory, ["file"]);
  const before = await count([directory]);
  linkSync(join(directory, "file"), join(directory, "again"));
  const after = await count([directory]);
  expect([before.files, after.files]).toEqual([3, 4]);
  expect(after.bytes).toBe(before.bytes);
});

test("a folder to be passed over is not there, and one that is given twice, or lies in another, counts once", async () => {
  fill(join(directory, "own"), ["1", "2"]);
  fill(join(directory, "rest"), ["3"]);
  const link = join(all, "other-name");
  symlinkSync(directory, link);
  const rest = bytesOf(directory) + bytesOf(join(directory, "rest")) + bytesOf(join(directory, "rest", "3"));
  expect(await count([directory], { except: [join(link, "own")] })).toEqual({ bytes: rest, files: 2 });
  expect(await count([directory, directory, link, join(directory, "own")])).toMatchObject({ files: 4 });
});

test("names that are no text count like others", async () => {
  writeFileSync(Buffer.concat([Buffer.from(`${directory}/`), Buffer.from([0xff, 0xfe])]), content);
  const folder = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from([0xe9])]);
  mkdirSync(folder);
  writeFileSync(Buffer.concat([folder, Buffer.from("/in")]), content);
  const held = await count([directory]);
  expect(held.files).toBe(3);
  expect(held.bytes).toBeGreaterThanOrEqual(2 * content.length);
});

const [dev, shm] = ["/dev", "/dev/shm"].map((path) => statSync(path, { throwIfNoEntry: false })?.dev);
if (shm !== undefined && shm !== dev) {
  test("another file system is not entered", async () => {
    const inside = mkdtempSync("/dev/shm/drover-held-");
    try {
      const before = await count(["/dev"], { withBytes: false });
      for (let at = 0; at < 300; at += 1) writeFileSync(join(inside, String(at)), "");
      // others make and remove devices meanwhile, but not hundreds
      expect((await count(["/dev"], { withBytes: false })).files).toBeLessThan(before.files + 200);
    } finally {
      rmSync(inside, { recursive: true });
    }
  });
}

test("what is not there holds nothing", async () => {
  expect(await count([join(directory, "none")])).toEqual({ bytes: 0, files: 0 });
});

test("a walk ends soon after there is isEnough, or when it is told to", async () => {
  const names = Array.from({ length: 2000 }, (_, at) => String(at));
  for (const name of names) writeFileSync(join(directory, name), "");
  const isEnough = await count([directory], { isEnough: ({ files }) => files > 100 });
  expect(isEnough.files).toBeGreaterThan(100);
  expect(isEnough.files).toBeLessThan(300);
  const stop = new AbortController();
  const stopped = await count([directory], {
    signal: stop.signal,
    isEnough: ({ files }) => {
      if (files > 500) stop.abort();
      return false;
    },
  });
  expect(stopped.files).toBeLessThan(1000);
});

test("others have their turn after every few hundred entries of a large folder", async () => {
  for (let at = 0; at < 2560; at += 1) writeFileSync(join(directory, String(at)), "");
  let counted = 0;
  let atLastTurn = 0;
  let most = 0;
  let over = false;
  const turn = (): void => {
    most = Math.max(most, counted - atLastTurn);
    atLastTurn = counted;
    if (!over) setImmediate(turn);
  };
  turn();
  const isEnough = ({ files }: DiskUsage): boolean => {
    counted = files;
    return false;
  };
  expect((await count([directory], { isEnough })).files).toBe(2560);
  over = true;
  expect(most).toBeGreaterThan(0);
  expect(most).toBeLessThanOrEqual(512);
});

test("entries that come and go meanwhile are no fault", async () => {
  const script =
    'while :; do mkdir -p a/b c; echo > a/b/1; echo > c/2; mv a/b c/b; ln -s /etc a/b; rm -rf a c; done 2> "/dev/null"';
  // a pipe that all of it holds closes when the last of them has ended
  const child = spawn("sh", ["-c", script], { cwd: directory, stdio: ["ignore", "pipe", "ignore"], detached: true });
  try {
    let seen = 0;
    for (let at = 0; at < 300 || seen === 0; at += 1) seen += (await count([directory])).files;
    expect(seen).toBeGreaterThan(0);
  } finally {
    child.stdout.resume();
    process.kill(-child.pid!, "SIGKILL");
    await once(child, "close");
  }
});
