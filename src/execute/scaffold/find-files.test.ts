import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, symlinkSync, truncateSync, unlinkSync, watch, writeFileSync } from "node:fs";
import { link, mkdir, mkdtemp, rename, rm, symlink, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readFileClock } from "./file-clock.ts";
import { findFiles } from "./find-files.ts";

let directory: string;
let root: string;
let outside: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "drover-find-"));
  root = join(directory, "work");
  outside = join(directory, "outside");
  await Promise.all([mkdir(root), mkdir(outside)]);
  await writeFile(join(outside, "secret.txt"), "outside");
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const { signal } = new AbortController();
const find = (since = 0n, maxEntries = 1000) => findFiles({ root, since, inputs: new Set(), maxEntries, signal });
const paths = async () => (await find()).files.map(({ path }) => path).sort();
const toRawPath = (name: string | Buffer) => Buffer.concat([Buffer.from(`${root}/`), Buffer.from(name)]);

test("finds files that were written or renamed since the given time", async () => {
  for (const name of ["same", "written", "renamed"]) await writeFile(join(root, name), "1");
  const since = await readFileClock(directory);
  await writeFile(join(root, "written"), "2");
  await rename(join(root, "renamed"), join(root, "new-name"));
  await writeFile(join(root, "made"), "1");
  expect((await find(since)).files.map(({ path }) => path).sort()).toEqual(["made", "new-name", "written"]);
});

test("skips files written just before the given time", async () => {
  for (let round = 0; round < 20; round++) {
    writeFileSync(join(root, "before"), String(round));
    expect((await find(await readFileClock(directory))).files).toEqual([]);
  }
});

test("reads the clock without creating a file in the directory", async () => {
  const names: (string | null)[] = [];
  // Events of the directory itself carry its own name.
  const watcher = watch(root, (_event, name) => void (name !== "work" && !names.includes(name) && names.push(name)));
  await readFileClock(root);
  // Events arrive in order.
  writeFileSync(join(root, "after"), "");
  await expect.poll(() => names, { interval: 10 }).toContain("after");
  watcher.close();
  expect(names).toEqual(["after"]);
});

test("finds a file even if its modification time was backdated", async () => {
  const since = await readFileClock(directory);
  execFileSync("touch", ["-d", "1990-01-01", join(root, "old-looking")]);
  expect((await find(since)).files).toHaveLength(1);
});

const links: [string, () => Promise<unknown>][] = [
  ["a link to a file outside", () => symlink(join(outside, "secret.txt"), join(root, "x"))],
  ["a link to a directory outside", () => symlink(outside, join(root, "x"))],
  ["a relative link outside", () => symlink("../outside/secret.txt", join(root, "x"))],
  ["a link to /proc/self/root", () => symlink("/proc/self/root", join(root, "x"))],
  ["a link to itself", () => symlink("x", join(root, "x"))],
  ["a link to its own directory", () => symlink(".", join(root, "x"))],
  ["a link to nowhere", () => symlink("/nowhere", join(root, "x"))],
  ["another name of a file outside", () => link(join(outside, "secret.txt"), join(root, "x"))],
  ["a pipe", async () => execFileSync("mkfifo", [join(root, "x")])],
  ["a dot file", () => writeFile(join(root, ".env"), "x")],
  [
    "a file in a dot directory",
    async () => (mkdirSync(join(root, ".git")), writeFileSync(join(root, ".git", "x"), "")),
  ],
];
test.each(links)("ignores %s", async (_title, createEntry) => {
  await createEntry();
  expect(await paths()).toEqual([]);
});

test("ignores a socket and, as root, a device", async () => {
  const server = createServer().listen(join(root, "socket"));
  await new Promise((resolve) => server.once("listening", resolve));
  if (process.getuid?.() === 0) execFileSync("sh", ["-c", `mknod '${root}/device' c 1 5 || true`]);
  try {
    expect(await paths()).toEqual([]);
  } finally {
    server.close();
  }
});

test("reports the size of a sparse terabyte file without reading it", async () => {
  writeFileSync(join(root, "huge"), "");
  truncateSync(join(root, "huge"), 2 ** 40);
  expect((await find()).files).toMatchObject([{ path: "huge", size: 2 ** 40 }]);
});

/** Names that can do harm where they are printed, stored or opened. */
const harmful: (string | Buffer)[] = [
  ...Array.from({ length: 31 }, (_, index) => `c${String.fromCharCode(index + 1)}x`),
  ...[0x7f, 0x80, 0x85, 0x9b, 0x9f].map((code) => `d${String.fromCodePoint(code)}x`),
  ...[0x2028, 0x2029, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069, 0xfeff].map(
    (code) => `u${String.fromCodePoint(code)}gpj.exe`,
  ),
  ...[0x80, 0xbf, 0xc0, 0xc1, 0xf5, 0xfe, 0xff].map((byte) => Buffer.from([0x62, byte])),
  Buffer.from([0xed, 0xa0, 0x80]), // A lone surrogate.
  Buffer.from([0xc0, 0xae, 0xc0, 0xae]), // ".." in too many bytes
  Buffer.from([0xe2, 0x82]), // Half a character.
];
const harmless = [
  "a b",
  " lead",
  "trail ",
  "~",
  "-rf",
  "--",
  "*",
  "?",
  "[a]",
  "$(id)",
  "`id`",
  "${HOME}",
  "a;b",
  "a|b",
  "a&b",
  "a>b",
  'q"q',
  "q'q",
  "back\\slash",
  "x\\..\\..\\y",
  "C:\\x",
  "CON",
  "nul.txt",
  "a=b",
  "a,b",
  "#a",
  "@a",
  "a:b",
  "%2e%2e%2f",
  "%00",
  "\\x00",
  "<script>",
  "&amp;",
  "é",
  "e\u0301",
  "日本語",
  "🎉",
  "a\u200db",
  "__proto__",
  "constructor",
  "node_modules",
  "x".repeat(255),
];

test(`skips ${harmful.length} harmful names and keeps ${harmless.length} harmless ones unchanged`, async () => {
  for (const name of [...harmful, ...harmless]) await writeFile(toRawPath(name), "x");
  const { files, skipped } = await find();
  expect(harmful.length + harmless.length).toBeGreaterThanOrEqual(100);
  expect(files.map(({ path }) => path).sort()).toEqual([...harmless].sort());
  expect(skipped).toHaveLength(harmful.length);
  for (const { path } of skipped) expect(path).not.toMatch(/[\p{Cc}\u2028-\u202e\u2066-\u2069]/u);
  for (const file of files) await (await file.open()).close();
});

test("skips a path that is too long or too deep, and returns the reason", async () => {
  const long = join(root, ...Array.from({ length: 5 }, () => "y".repeat(250)));
  mkdirSync(long, { recursive: true });
  writeFileSync(join(long, "f"), "");
  mkdirSync(join(root, ...Array.from({ length: 80 }, () => "d")), { recursive: true });
  const { files, skipped } = await find();
  expect(files).toEqual([]);
  expect(skipped.map(({ reason }) => reason).sort()).toEqual(["path_too_long", "too_deep"]);
});

test("stops at maxEntries, and reports that it did", async () => {
  for (let index = 0; index < 50; index++) writeFileSync(join(root, `f${index}`), "");
  const { files, isTruncated } = await find(0n, 20);
  expect(files).toHaveLength(20);
  expect(isTruncated).toBe(true);
});

test("does not open a file that was replaced by a link or a pipe after it was found", async () => {
  mkdirSync(join(root, "a"));
  writeFileSync(join(root, "a", "secret.txt"), "inside");
  for (const name of ["f", "hard", "pipe"]) writeFileSync(join(root, name), "inside");
  const { files } = await find();
  await rm(join(root, "a"), { recursive: true });
  symlinkSync(outside, join(root, "a"));
  unlinkSync(join(root, "f"));
  symlinkSync(join(outside, "secret.txt"), join(root, "f"));
  for (const name of ["hard", "pipe"]) unlinkSync(join(root, name));
  await link(join(outside, "secret.txt"), join(root, "hard"));
  execFileSync("mkfifo", [join(root, "pipe")]);
  expect(files).toHaveLength(4);
  for (const file of files) await expect(file.open()).rejects.toThrow();
});

test("never reads outside the root while links are swapped in and out", async () => {
  mkdirSync(join(root, "a"));
  writeFileSync(join(root, "a", "secret.txt"), "inside");
  writeFileSync(join(root, "f"), "inside");
  const aside = mkdtempSync(join(directory, "aside-"));
  symlinkSync(outside, join(aside, "a"));
  symlinkSync(join(outside, "secret.txt"), join(aside, "f"));
  const swapper = new Worker(swapScript, { eval: true, workerData: { root, aside } });
  await new Promise((resolve) => swapper.once("message", resolve));
  let read = 0;
  try {
    const until = Date.now() + 3000;
    while (Date.now() < until) {
      for (const file of (await find()).files) {
        const handle = await file.open().catch(() => null);
        if (handle === null) continue;
        const buffer = Buffer.alloc(100);
        const { bytesRead } = await handle.read({ buffer, position: 0 });
        expect(buffer.toString("utf8", 0, bytesRead)).toBe("inside");
        await handle.close();
        read++;
      }
    }
  } finally {
    await swapper.terminate();
  }
  expect(read).toBeGreaterThan(0);
});

/** Swaps the real files with the links and back, as fast as it can. */
const swapScript = `
  const { renameSync } = require("node:fs");
  const { parentPort, workerData: { root, aside } } = require("node:worker_threads");
  parentPort.postMessage("started");
  for (;;) for (const name of ["a", "f"]) {
    renameSync(root + "/" + name, aside + "/real-" + name);
    renameSync(aside + "/" + name, root + "/" + name);
    renameSync(root + "/" + name, aside + "/" + name);
    renameSync(aside + "/real-" + name, root + "/" + name);
  }
`;

test("finds shallow files before deep ones, and installed packages last", async () => {
  for (const name of ["a", "node_modules", "z"]) mkdirSync(join(root, name, "deep"), { recursive: true });
  for (let index = 0; index < 30; index++) {
    writeFileSync(join(root, "a", "deep", `f${index}`), "");
    writeFileSync(join(root, "node_modules", `f${index}`), "");
  }
  for (const path of ["top", "a/one", "z/one", "z/deep/two"]) writeFileSync(join(root, path), "");
  const findPaths = async (count: number) => (await find(0n, count)).files.map(({ path }) => path);
  // The first 8 entries are 4 in the root, then 2 in each of a and z.
  expect((await findPaths(8)).sort()).toEqual(["a/one", "top", "z/one"]);
  // The next 31 entries are in their subdirectories.
  expect((await findPaths(8 + 31)).filter((path) => path.startsWith("node_modules"))).toEqual([]);
  expect(await findPaths(8 + 31)).toContain("z/deep/two");
  expect(await findPaths(1000)).toHaveLength(64);
});

test("finds thousands of files, and stops once the signal aborts", async () => {
  for (let outer = 0; outer < 10; outer++) {
    mkdirSync(join(root, `d${outer}`));
    for (let index = 0; index < 500; index++) writeFileSync(join(root, `d${outer}`, `f${index}`), "");
  }
  expect((await find(0n, 100_000)).files).toHaveLength(5000);
  const controller = new AbortController();
  const search = findFiles({ root, since: 0n, inputs: new Set(), maxEntries: 100_000, signal: controller.signal });
  setImmediate(() => controller.abort());
  expect((await search).files.length).toBeLessThan(5000);
});
