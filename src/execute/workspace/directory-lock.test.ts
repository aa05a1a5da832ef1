import { build } from "esbuild";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { lockDirectory, type LockOptions } from "./directory-lock.ts";

let folder: string;
let started: ChildProcess[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "drover-locks-"));
  started = [];
});
afterEach(async () => {
  for (const child of started) child.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

/** Takes and gives back a directory so many times; a file that may exist only once shows whether it was alone. */
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
      const place = { folder: __dirname + "/locks", owner, isAlive, newId };
      const lock = await lockDirectory(directory, "run", place, new AbortController().signal, () => {});
      closeSync(openSync(__dirname + "/busy", "wx"));
      await new Promise((resolve) => setTimeout(resolve, Number(hold)));
      rmSync(__dirname + "/busy");
      await lock.release();
    }
  })();
`;

async function prepare(): Promise<(directory: string, times: number, holdMs: number) => ChildProcess> {
  await build({
    entryPoints: [resolve("src/execute/workspace/directory-lock.ts")],
    outfile: join(folder, "lock.cjs"),
    bundle: true,
    platform: "node",
    format: "cjs",
    logLevel: "error",
  });
  writeFileSync(join(folder, "take.cjs"), script);
  return (directory, times, holdMs) => {
    const words = [join(folder, "take.cjs"), directory, String(times), String(holdMs)];
    const child = spawn(process.execPath, words, { stdio: ["ignore", "inherit", "inherit"] });
    started.push(child);
    return child;
  };
}

test("processes that share a state directory are never in one directory at once", async () => {
  const take = await prepare();
  const children = ["/p", "/p/below", "/p", "/p/below/deep"].map((directory) => take(directory, 8, 1));
  const codes = await Promise.all(children.map(async (child) => ((await once(child, "exit")) as [number | null])[0]));
  expect(codes).toEqual([0, 0, 0, 0]);
  expect(readdirSync(join(folder, "locks"))).toEqual([]);
});

test("what a killed process held is free", async () => {
  const take = await prepare();
  const holder = take("/p", 1, 1_000_000);
  await expect.poll(() => readdirSync(folder)).toContain("busy");
  const next = take("/p", 1, 1);
  holder.kill("SIGKILL");
  await once(holder, "exit");
  await rm(join(folder, "busy"));
  expect(((await once(next, "exit")) as [number | null])[0]).toBe(0);
});

let ids = 0;
const placeOn = (host: string, more: Partial<LockOptions> = {}): LockOptions => ({
  folder: join(folder, "locks"),
  owner: { pid: process.pid, start: "", host },
  isAlive: () => true,
  newId: () => `n${++ids}`.padStart(8, "0"),
  ...more,
});
const held = () => readdirSync(join(folder, "locks"));

/** As somebody left it so long ago. */
function leave(name: string, text: string, secondsAgo: number): void {
  mkdirSync(join(folder, "locks"), { recursive: true });
  const path = join(folder, "locks", name);
  writeFileSync(path, text);
  const then = Date.now() / 1000 - secondsAgo;
  utimesSync(path, then, then);
}

async function tryFor(ms: number, place: LockOptions) {
  return await lockDirectory("/p", "run", place, AbortSignal.timeout(ms), () => undefined);
}

test.each([
  ["an empty file", "0.json", ""],
  ["half a file", "0.json", '{"directory": "/p"'],
  ["something else", "0.json", '{"directory": 1}'],
  ["a file nobody finished putting up", "0.json.aside", "{"],
])("%s that was left long ago stops nobody and is cleaned up", async (_title, name, text) => {
  leave(name, text, 120);
  const lock = await tryFor(100_000, placeOn("here"));
  expect(lock).not.toBeNull();
  await lock?.release();
  expect(held()).toEqual([]);
});

test("a claim nobody can read is waited for while it is fresh", async () => {
  leave("0.json", "", 0);
  expect(await tryFor(300, placeOn("here"))).toBeNull();
  expect(held()).toEqual(["0.json"]);
});

test("a claim of another host stands as long as it is freshened, and no longer", async () => {
  const lasting = await tryFor(100_000, placeOn("there", { staleMs: 5000 }));
  expect(lasting).not.toBeNull();
  expect(await tryFor(7000, placeOn("here", { staleMs: 5000 }))).toBeNull();
  await lasting?.release();
  leave("0.json", JSON.stringify({ directory: "/p", run_id: "r", owner: { pid: 1, start: "", host: "gone" } }), 120);
  const lock = await tryFor(100_000, placeOn("here"));
  expect(lock).not.toBeNull();
  await lock?.release();
  expect(held()).toEqual([]);
});

test("an old claim of this host stands while its owner lives", async () => {
  leave("0.json", JSON.stringify({ directory: "/p", run_id: "r", owner: { pid: 1, start: "", host: "here" } }), 120);
  expect(await tryFor(300, placeOn("here"))).toBeNull();
});

test("who cannot find out whether it is alone takes its own claim down", async () => {
  leave("0.json", JSON.stringify({ directory: "/p", run_id: "r", owner: { pid: 1, start: "", host: "here" } }), 0);
  const isAlive = (): boolean => {
    throw new Error("no way to tell");
  };
  await expect(tryFor(100_000, placeOn("here", { isAlive }))).rejects.toThrow("no way to tell");
  expect(held()).toEqual(["0.json"]);
});
