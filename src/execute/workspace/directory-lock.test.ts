import { build } from "esbuild";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { lockDirectory, type LockOptions } from "./directory-lock.ts";

let tmp: string;
let started: ChildProcess[];
beforeEach(() => {
  tmp = mkdtempSync(join(tmpdir(), "drover-locks-"));
  started = [];
});
afterEach(async () => {
  for (const child of started) child.kill("SIGKILL");
  await rm(tmp, { recursive: true, force: true });
});

/**
 * Locks and releases a directory several times. Fails if the file `busy` exists, which means that another process holds
 * it.
 */
const script = `
  const { lockDirectory } = require("./lock.cjs");
  const { closeSync, openSync, rmSync } = require("node:fs");
  const [directory, times, hold] = process.argv.slice(2);
  const owner = { pid: process.pid, start: "", host: "here" };
  const isAlive = ({ pid }) => { try { process.kill(pid, 0); return true; } catch { return false; } };
  let count = 0;
  const newId = () => Date.now().toString(36) + "-" + process.pid + "-" + ++count;
  (async () => {
    for (let n = 0; n < Number(times); n++) {
      const options = { locksDirectory: __dirname + "/locks", owner, isAlive, newId };
      const lock = await lockDirectory(directory, "run", options, new AbortController().signal, () => {});
      closeSync(openSync(__dirname + "/busy", "wx"));
      await new Promise((resolve) => setTimeout(resolve, Number(hold)));
      rmSync(__dirname + "/busy");
      await lock.release();
    }
  })();
`;

async function buildLockScript(): Promise<(directory: string, times: number, holdMs: number) => ChildProcess> {
  await build({
    entryPoints: [resolve("src/execute/workspace/directory-lock.ts")],
    outfile: join(tmp, "lock.cjs"),
    bundle: true,
    platform: "node",
    format: "cjs",
    logLevel: "error",
  });
  writeFileSync(join(tmp, "take.cjs"), script);
  return (directory, times, holdMs) => {
    const scriptArguments = [join(tmp, "take.cjs"), directory, String(times), String(holdMs)];
    const child = spawn(process.execPath, scriptArguments, { stdio: ["ignore", "inherit", "inherit"] });
    started.push(child);
    return child;
  };
}

test("never gives one directory to two processes at once", async () => {
  const startHolder = await buildLockScript();
  const children = ["/p", "/p/below", "/p", "/p/below/deep"].map((directory) => startHolder(directory, 8, 1));
  const codes = await Promise.all(children.map(async (child) => ((await once(child, "exit")) as [number | null])[0]));
  expect(codes).toEqual([0, 0, 0, 0]);
  expect(readdirSync(join(tmp, "locks"))).toEqual([]);
});

test("releases the directory of a killed process", async () => {
  const startHolder = await buildLockScript();
  const holder = startHolder("/p", 1, 1_000_000);
  await expect.poll(() => readdirSync(tmp)).toContain("busy");
  const next = startHolder("/p", 1, 1);
  holder.kill("SIGKILL");
  await once(holder, "exit");
  await rm(join(tmp, "busy"));
  expect(((await once(next, "exit")) as [number | null])[0]).toBe(0);
});

let ids = 0;
const optionsFor = (host: string, overrides: Partial<LockOptions> = {}): LockOptions => ({
  locksDirectory: join(tmp, "locks"),
  owner: { pid: process.pid, start: "", host },
  isAlive: () => true,
  newId: () => `n${++ids}`.padStart(8, "0"),
  ...overrides,
});
const listLockFiles = () => readdirSync(join(tmp, "locks"));

/** Writes a lock file with an old mtime. */
function writeLockFile(name: string, text: string, secondsAgo: number): void {
  mkdirSync(join(tmp, "locks"), { recursive: true });
  const path = join(tmp, "locks", name);
  writeFileSync(path, text);
  const modifiedAt = Date.now() / 1000 - secondsAgo;
  utimesSync(path, modifiedAt, modifiedAt);
}

async function lockWithin(ms: number, options: LockOptions) {
  return await lockDirectory("/p", "run", options, AbortSignal.timeout(ms), () => undefined);
}

test.each([
  ["an empty file", "0.json", ""],
  ["half a file", "0.json", '{"directory": "/p"'],
  ["another JSON file", "0.json", '{"directory": 1}'],
  ["an unfinished temporary file", "0.json.tmp", "{"],
])("ignores and removes %s that was left long ago", async (_title, name, text) => {
  writeLockFile(name, text, 120);
  const lock = await lockWithin(100_000, optionsFor("here"));
  expect(lock).not.toBeNull();
  await lock?.release();
  expect(listLockFiles()).toEqual([]);
});

test("waits for an unreadable lock file while it is fresh", async () => {
  writeLockFile("0.json", "", 0);
  expect(await lockWithin(300, optionsFor("here"))).toBeNull();
  expect(listLockFiles()).toEqual(["0.json"]);
});

test("respects a lock file of another host only as long as it is refreshed", async () => {
  const lasting = await lockWithin(100_000, optionsFor("there", { staleMs: 5000 }));
  expect(lasting).not.toBeNull();
  expect(await lockWithin(7000, optionsFor("here", { staleMs: 5000 }))).toBeNull();
  await lasting?.release();
  writeLockFile(
    "0.json",
    JSON.stringify({ directory: "/p", run_id: "r", owner: { pid: 1, start: "", host: "gone" } }),
    120,
  );
  const lock = await lockWithin(100_000, optionsFor("here"));
  expect(lock).not.toBeNull();
  await lock?.release();
  expect(listLockFiles()).toEqual([]);
});

test("respects an old lock file of this host while its owner is alive", async () => {
  writeLockFile(
    "0.json",
    JSON.stringify({ directory: "/p", run_id: "r", owner: { pid: 1, start: "", host: "here" } }),
    120,
  );
  expect(await lockWithin(300, optionsFor("here"))).toBeNull();
});

test("removes its own lock file if it cannot check another file's owner", async () => {
  writeLockFile(
    "0.json",
    JSON.stringify({ directory: "/p", run_id: "r", owner: { pid: 1, start: "", host: "here" } }),
    0,
  );
  const isAlive = (): boolean => {
    throw new Error("no way to tell");
  };
  await expect(lockWithin(100_000, optionsFor("here", { isAlive }))).rejects.toThrow("no way to tell");
  expect(listLockFiles()).toEqual(["0.json"]);
});
