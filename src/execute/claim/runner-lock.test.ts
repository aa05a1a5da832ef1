import { mkdtempSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { lockRunner, readRunnerKey } from "./runner-lock.ts";

const directories: string[] = [];
afterEach(async () => {
  for (const path of directories.splice(0)) await rm(path, { recursive: true, force: true });
});
function makeDirectory(): string {
  const path = mkdtempSync(join(tmpdir(), "drover-lock-"));
  directories.push(path);
  return path;
}

const owner = (pid: number) => ({ pid, start: `s${pid}`, host: "here" });

test("refuses a second process for a live runner, and takes over a lock that was released or whose owner died", () => {
  const directory = makeDirectory();
  const alive = new Set([1, 2, 3]);
  const lock = (pid: number) => lockRunner(directory, owner(pid), (held) => alive.has(held.pid));
  const first = lock(1);
  expect(() => lock(2)).toThrow("already running as process 1");
  first.release();
  lock(2);
  alive.delete(2);
  const third = lock(3);
  first.release();
  expect(() => lock(1)).toThrow("process 3");
  third.release();
  expect(readdirSync(directory)).toEqual([]);
});

test("takes over a damaged lock", () => {
  const directory = makeDirectory();
  writeFileSync(join(directory, "lock"), "{");
  expect(() => lockRunner(directory, owner(1), () => true)).not.toThrow();
});

test("generates a long key once, readable by its owner alone", () => {
  const directory = makeDirectory();
  const key = readRunnerKey(directory);
  expect(key).toMatch(/^[0-9a-f]{64}$/);
  expect(readRunnerKey(directory)).toBe(key);
  expect(statSync(join(directory, "key")).mode & 0o777).toBe(0o600);
});
