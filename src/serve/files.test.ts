import { randomBytes } from "node:crypto";
import { existsSync, readdirSync, statSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { Readable } from "node:stream";
import { afterAll, beforeAll, expect, test } from "vitest";
import { blobsDirectory, recordDirectory } from "../model/state-layout.ts";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type ClaimedRun, claimOverHttp, hashBytes } from "../../test/fixtures/dispatch/claimed.ts";
import { hostilePaths } from "../../test/fixtures/dispatch/hostile-paths.ts";
import { rawCall } from "../../test/http-call.ts";
import { first, type Work } from "../record/query.ts";

let coordinator: TestCoordinator;
let claimed: ClaimedRun;
const maxFileBytes = 8 * 1024 * 1024;
beforeAll(async () => {
  coordinator = await startTestCoordinator({ leaseMs: 600_000, maxFileBytes });
  claimed = await claimOverHttp(coordinator, "files");
});
afterAll(async () => {
  claimed.port.close();
  expect(coordinator.defects).toEqual([]);
  await coordinator.dispose();
});

const authorization = () => ({ authorization: `Bearer ${coordinator.adminToken}` });
const blobDirectory = () => blobsDirectory(recordDirectory(coordinator.directory));
const blobPath = (bytes: Uint8Array) => join(blobDirectory(), hashBytes(bytes).slice(0, 2), hashBytes(bytes));
const listUnfinished = () =>
  existsSync(blobDirectory()) ? readdirSync(blobDirectory()).filter((name) => name.length > 2) : [];
const text = (value: string) => Buffer.from(value);
const listPaths = async (run_id: string) => (await coordinator.client.runs.files(run_id)).items.map(({ path }) => path);

test("returns a file unchanged, with headers that keep browsers from executing it", async () => {
  const bytes = randomBytes(3 * 1024 * 1024 + 1);
  await claimed.keep("out/päge one's.html", bytes, "text/html");
  const expectedFile = {
    path: "out/päge one's.html",
    size: bytes.length,
    sha256: hashBytes(bytes),
    media_type: "text/html",
  };
  expect((await coordinator.client.runs.files(claimed.run_id)).items).toContainEqual(expectedFile);
  const file = await coordinator.client.runs.file(claimed.run_id, expectedFile.path);
  expect(file).toMatchObject({ size: bytes.length, sha256: expectedFile.sha256 });
  expect((await buffer(file.stream)).equals(bytes)).toBe(true);

  const get = (headers = {}) =>
    rawCall(coordinator.url, {
      path: `/runs/${claimed.run_id}/files/${encodeURIComponent(expectedFile.path)}`,
      headers: { ...authorization(), ...headers },
    });
  expect((await get()).headers).toMatchObject({
    "content-type": "application/octet-stream",
    "content-length": String(bytes.length),
    "content-disposition": "attachment; filename*=UTF-8''p%C3%A4ge%20one%27s.html",
    "content-security-policy": "default-src 'none'; sandbox",
    "x-content-type-options": "nosniff",
    etag: `"${expectedFile.sha256}"`,
  });
  expect(await get({ "if-none-match": `"${expectedFile.sha256}"` })).toMatchObject({ status: 304, text: "" });
  expect(statSync(blobPath(bytes)).mode & 0o777).toBe(0o600);
});

test("serves only safe media types", async () => {
  for (const [media_type, shown] of [
    ["text/plain", "text/plain; charset=utf-8"],
    ["IMAGE/PNG", "image/png"],
    ["image/svg+xml", "application/octet-stream"],
    ["application/javascript", "application/octet-stream"],
    ["text/plain; charset=utf-16", "application/octet-stream"],
    ["text/html\r\nset-cookie: a=b", "application/octet-stream"],
    ["", "application/octet-stream"],
  ] as const) {
    await claimed.keep("typed", text(media_type), media_type);
    const { headers } = await rawCall(coordinator.url, {
      path: `/runs/${claimed.run_id}/files/typed`,
      headers: authorization(),
    });
    expect([media_type, headers["content-type"], headers["set-cookie"]]).toEqual([media_type, shown, undefined]);
  }
});

test(`${hostilePaths.length} hostile names create no file and appear in the log`, async () => {
  expect(hostilePaths.length).toBeGreaterThanOrEqual(100);
  const bytes = text("hostile");
  const run = await claimOverHttp(coordinator, "hostile");
  await run.upload(bytes);
  const before = readdirSync(coordinator.directory).sort();
  const file = { type: "file", size: bytes.length, sha256: hashBytes(bytes), media_type: "text/plain" } as const;
  for (const path of hostilePaths) await run.append({ ...file, path });
  expect(await listPaths(run.run_id)).toEqual([]);
  await run.append({ ...file, path: "fine" });
  expect(await listPaths(run.run_id)).toEqual(["fine"]);
  expect(readdirSync(coordinator.directory).sort()).toEqual(before);
  for (const path of hostilePaths) {
    const url = `/runs/${run.run_id}/files/${path.toWellFormed().split("/").map(encodeURIComponent).join("/")}`;
    const response = await rawCall(coordinator.url, { path: url.slice(0, 8000), headers: authorization() });
    // A path that normalizes to another route returns no file either.
    expect([path, [200, 302, 404, 400].includes(response.status), response.text.includes("hostile")]).toEqual([
      path,
      true,
      false,
    ]);
  }
  run.port.close();
});

test("keeps unusual but harmless file names unchanged", async () => {
  const run = await claimOverHttp(coordinator, "unusual");
  const unusualPaths = [
    "a b",
    "ü",
    "😀.png",
    "%2e%2e",
    "a\\b",
    "'; drop table files; --",
    "<script>",
    "con",
    "a?b#c",
    '"q"',
    "-rf",
    "x".repeat(1024),
  ];
  for (const path of unusualPaths) await run.keep(path, text(path));
  expect(await listPaths(run.run_id)).toEqual(
    [...unusualPaths].sort((a, b) => Buffer.compare(text(sortKey(a)), text(sortKey(b)))),
  );
  for (const path of unusualPaths) {
    const { stream } = await coordinator.client.runs.file(run.run_id, path);
    expect((await buffer(stream)).toString()).toBe(path);
  }
  run.port.close();
});

/** Sorts like the store: names that must be quoted sort by the quote. */
function sortKey(path: string): string {
  return /^"|[\ud800-\udfff]/.test(path) ? JSON.stringify(path) : path;
}

test("refuses a file with the wrong size or hash or above the limit, and keeps nothing", async () => {
  const bytes = text("announced");
  expect(await claimed.upload(bytes, { sha256: "a".repeat(64) })).toEqual({ upload: "mismatch" });
  const large = Buffer.alloc(maxFileBytes + 1);
  await expect(claimed.upload(large)).rejects.toMatchObject({
    conflict: "refused",
    message: expect.stringContaining(`accepts at most ${maxFileBytes}`),
  });
  const query = new URLSearchParams({
    runner_id: claimed.runner.runner_id,
    epoch: String(claimed.runner.epoch),
    run_id: claimed.run_id,
    attempt: "1",
    sha256: hashBytes(bytes),
    size: "9",
  });
  const post = (path: string, headers: Record<string, string>, body: Buffer) =>
    rawCall(coordinator.url, { method: "POST", path, headers: { ...authorization(), ...headers }, body });
  expect(await post(`/runner/files?${String(query)}`, {}, text("too long by far"))).toMatchObject({ status: 400 });
  expect(await post(`/runner/files?${String(query)}`, {}, text("short"))).toMatchObject({ status: 400 });
  for (const [name, value] of [
    ["sha256", hashBytes(bytes).toUpperCase()],
    ["sha256", "../../../etc/passwd"],
    ["sha256", ""],
    ["size", "-1"],
    ["size", "9e0"],
    ["size", "0x9"],
    ["attempt", "1.5"],
    ["epoch", "now"],
    ["more", "x"],
  ] as const) {
    const invalidQuery = new URLSearchParams(query);
    invalidQuery.set(name, value);
    expect([name, value, (await post(`/runner/files?${String(invalidQuery)}`, {}, bytes)).status]).toEqual([
      name,
      value,
      400,
    ]);
  }
  expect(existsSync(blobPath(bytes))).toBe(false);
  expect(existsSync(blobPath(large))).toBe(false);
  expect(listUnfinished()).toEqual([]);
  expect(await post(`/runner/files?${String(query)}`, {}, bytes)).toMatchObject({
    status: 200,
    text: '{"upload":"stored"}',
  });
});

test("an interrupted upload leaves no file, not even a partial one", async () => {
  const bytes = randomBytes(4 * 1024 * 1024);
  const query = new URLSearchParams({
    runner_id: claimed.runner.runner_id,
    epoch: String(claimed.runner.epoch),
    run_id: claimed.run_id,
    attempt: "1",
    sha256: hashBytes(bytes),
    size: String(bytes.length),
  });
  const clientRequest = request(`${coordinator.url}/runner/files?${String(query)}`, {
    method: "POST",
    headers: { ...authorization(), "content-length": bytes.length },
    agent: false,
  });
  clientRequest.on("error", () => undefined);
  clientRequest.write(bytes.subarray(0, 1024 * 1024));
  await waitUntil(() => listUnfinished().length === 1);
  expect(existsSync(blobPath(bytes))).toBe(false);
  clientRequest.destroy();
  await waitUntil(() => listUnfinished().length === 0);
  expect(existsSync(blobPath(bytes))).toBe(false);
  expect(await claimed.upload(bytes)).toEqual({ upload: "stored" });
});

test("reports a runner that cannot read its file in time, and keeps nothing", async () => {
  const bytes = text("slow bytes");
  const uploadRequest = {
    ...claimed.runner,
    run_id: claimed.run_id,
    attempt: claimed.attempt,
    sha256: hashBytes(bytes),
    size: 10,
  };
  const stuck = async function* () {
    yield bytes.subarray(0, 4);
    await new Promise(() => undefined);
  };
  const aborted = claimed.port.upload(uploadRequest, stuck(), AbortSignal.timeout(200));
  await expect(aborted).rejects.toMatchObject({ conflict: "away" });
  const broken = async function* () {
    yield bytes.subarray(0, 4);
    throw new Error("cannot be read");
  };
  await expect(claimed.port.upload(uploadRequest, broken(), AbortSignal.timeout(60_000))).rejects.toThrow(
    "cannot be read",
  );
  await waitUntil(() => listUnfinished().length === 0);
  expect(existsSync(blobPath(bytes))).toBe(false);
});

test("stores identical content of two runs once", async () => {
  const bytes = text("shared content");
  const other = await claimOverHttp(coordinator, "sharing");
  for (const run of [claimed, other]) await run.keep("shared", bytes);
  await Promise.all([claimed.upload(bytes), other.upload(bytes), claimed.upload(bytes)]);
  expect(
    readdirSync(join(blobDirectory(), hashBytes(bytes).slice(0, 2))).filter((name) => name === hashBytes(bytes)),
  ).toHaveLength(1);
  for (const { run_id } of [claimed, other])
    expect((await buffer((await coordinator.client.runs.file(run_id, "shared")).stream)).toString()).toBe(
      "shared content",
    );
  other.port.close();
});

test("refuses a fenced upload with 409, records it, and does not grant access by its hash", async () => {
  const bytes = text("of another run");
  await claimed.keep("private", bytes);
  const thief = await claimOverHttp(coordinator, "thief");
  const file = {
    type: "file",
    path: "got",
    size: bytes.length,
    sha256: hashBytes(bytes),
    media_type: "text/plain",
  } as const;
  await thief.append(file);
  expect(await listPaths(thief.run_id)).toEqual([]);
  const count = () =>
    coordinator.store.engine.read(function* (): Work<number> {
      const [row] = yield first("select count(*) as n from audit_rows where kind = 'fenced'");
      return Number(row?.["n"]);
    });
  const before = await count();
  const other = { run_id: claimed.run_id, attempt: claimed.attempt, sha256: hashBytes(bytes), size: bytes.length };
  expect(
    await thief.port.upload({ ...thief.runner, ...other }, Readable.from([bytes]), AbortSignal.timeout(60_000)),
  ).toEqual({
    upload: "fenced",
  });
  await thief.finish();
  expect(await thief.upload(text("after the end"))).toEqual({ upload: "fenced" });
  expect(existsSync(blobPath(text("after the end")))).toBe(false);
  expect(await count()).toBe(before + 2);
  thief.port.close();
});

async function waitUntil(condition: () => boolean): Promise<void> {
  for (const deadline = Date.now() + 120_000; !condition();) {
    expect(Date.now()).toBeLessThan(deadline);
    await new Promise((resolve) => {
      setTimeout(resolve, 10);
    });
  }
}
