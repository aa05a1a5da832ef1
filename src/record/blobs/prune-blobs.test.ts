import { existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import { expect, it } from "vitest";
import { runWithFiles, hashBytes } from "../../../test/fixtures/record/files.ts";
import { scratchStores } from "../../../test/fixtures/record/scratch.ts";
import { createAgent, drive } from "../../../test/fixtures/dispatch/drive.ts";
import type { SqliteStore } from "../open.ts";
import { pruneDispatch } from "../retention-dispatch.ts";
import { pruneBlobs } from "./prune-blobs.ts";

const { newDirectory, open } = scratchStores();
const toBytes = (value: string) => Buffer.from(value);
const neverAborted = new AbortController().signal;
const put = (store: SqliteStore, bytes: Buffer) =>
  store.blobs.put(Readable.from([bytes]), { sha256: hashBytes(bytes), size: bytes.length }, neverAborted);
const getBlobFile = (store: SqliteStore, bytes: Buffer) =>
  join(store.directory, "files", hashBytes(bytes).slice(0, 2), hashBytes(bytes));
const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000);

it("removes unreferenced contents after an hour, and partial files", async () => {
  const store = await open(newDirectory());
  const [used, unused, recent] = [toBytes("used"), toBytes("unused"), toBytes("recent")];
  await runWithFiles(store, [used]);
  for (const bytes of [unused, recent]) await put(store, bytes);
  const [stale, fresh] = [`.part-${"a".repeat(16)}`, `.part-${"b".repeat(16)}`].map((name) =>
    join(store.directory, "files", name),
  );
  for (const part of [stale!, fresh!]) writeFileSync(part, "half");
  for (const old of [getBlobFile(store, used), getBlobFile(store, unused), stale!])
    utimesSync(old, hoursAgo(2), hoursAgo(2));
  expect(await pruneBlobs(store, new Date())).toEqual({ blobs: 1 });
  expect([used, unused, recent].map((bytes) => existsSync(getBlobFile(store, bytes)))).toEqual([true, false, true]);
  expect([stale!, fresh!].map((part) => existsSync(part))).toEqual([false, true]);
});

it("keeps uploads of a running run, and removes them when it ends without referring to them", async () => {
  const store = await open(newDirectory());
  const driver = drive(store, () => new Date());
  const bytes = toBytes("brought");
  const run_id = await driver.submit({}, createAgent("keeper"));
  const runner = await driver.register("r");
  await driver.claim(runner);
  await put(store, bytes);
  await store.apply([{ op: "add_upload", run_id, attempt: 1, runner, sha256: hashBytes(bytes), size: bytes.length }]);
  utimesSync(getBlobFile(store, bytes), hoursAgo(2), hoursAgo(2));
  expect(await pruneBlobs(store, new Date())).toEqual({ blobs: 0 });
  await driver.finish(runner, run_id, 1);
  expect(await pruneBlobs(store, new Date())).toEqual({ blobs: 1 });
});

it("removes contents with the last run that refers to them; sessions have their own retention", async () => {
  const store = await open(newDirectory());
  const bytes = toBytes("of two runs");
  const older = await runWithFiles(store, [bytes]);
  const before = new Date(Date.now() + 1);
  await new Promise((resolve) => {
    setTimeout(resolve, 5);
  });
  const newer = await runWithFiles(store, [bytes]);
  utimesSync(getBlobFile(store, bytes), hoursAgo(2), hoursAgo(2));
  expect(await pruneDispatch(store, before)).toEqual({ runs: 1, sessions: 1 });
  expect(await store.read.files(older)).toEqual([]);
  expect(existsSync(getBlobFile(store, bytes))).toBe(true);
  const last = await runWithFiles(store, []);
  expect(await pruneDispatch(store, new Date(Date.now() + 1000))).toEqual({ runs: 1, sessions: 2 });
  expect([await store.read.run(newer), (await store.read.run(last))?.status]).toEqual([null, "completed"]);
  expect(existsSync(getBlobFile(store, bytes))).toBe(false);
  expect(
    readdirSync(join(store.directory, "files")).flatMap((name) => readdirSync(join(store.directory, "files", name))),
  ).toEqual([]);
});

it("does not touch files that Drover did not create", async () => {
  const store = await open(newDirectory());
  expect(await pruneBlobs(store, new Date())).toEqual({ blobs: 0 });
  const other = join(store.directory, "files", "ab");
  mkdirSync(other, { recursive: true });
  for (const file of [join(other, "notes.txt"), join(store.directory, "files", "README")]) {
    writeFileSync(file, "notes");
    utimesSync(file, hoursAgo(99), hoursAgo(99));
  }
  expect(await pruneBlobs(store, new Date())).toEqual({ blobs: 0 });
  expect(readdirSync(other)).toEqual(["notes.txt"]);
});
