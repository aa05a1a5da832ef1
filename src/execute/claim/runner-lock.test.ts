import { mkdtempSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { lockRunner, readRunnerKey } from "./runner-lock.ts";

const directories: string[] = [];
afterEach(async () => {
  for (const made of directories.splice(0)) await rm(made, { recursive: true, force: true });
});
function makeDirectory(): string {
  const made = mkdtempSync(join(tmpdir(), "drover-lock-"));
  directories.push(made);
  return made;
}

const owner = (pid: number) => ({ pid, start: `s${pid}`, host: "here" });

test("refuses a second process for a live runner, and takes over a lock that was released or whose owner died", () => {
  const directory = makeDirectory();
  const alive = new Set([1, 2, 3]);
  const take = (pid: number) => lockRunner(directory, owner(pid), (held) => alive.has(held.pid));
  const first = take(1);
  expect(() => take(2)).toThrow("already running as process 1");
  first.release();
  take(2);
  alive.delete(2);
  const third = take(3);
  first.release();
  expect(() => take(1)).toThrow("process 3");
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
