import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { hostname, tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { startTestCoordinator, type TestCoordinator } from "../../test/coordinator.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import { recordDirectory } from "../model/state-layout.ts";
import { openDatabase } from "../record/sqlite/driver.ts";
import { createClient } from "../wire/client.ts";

let database: FreshDatabase;
let coordinator: TestCoordinator;
/** Another coordinator on the same record. */
let otherCoordinator: TestCoordinator;
let directory: string;
const secret = randomBytes(32);
const options = () => ({ database: { url: database.url, secret }, keepaliveMs: 100 });

const originalTmpdir = process.env["TMPDIR"];
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "drover-backups-"));
  process.env["TMPDIR"] = directory;
  database = await freshDatabase();
  coordinator = await startTestCoordinator(options());
  otherCoordinator = await startTestCoordinator(options());
});
afterAll(async () => {
  expect([...coordinator.defects, ...otherCoordinator.defects]).toEqual([]);
  await Promise.all([coordinator.dispose(), otherCoordinator.dispose()]);
  await database.drop();
  rmSync(directory, { recursive: true, force: true });
  if (originalTmpdir === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = originalTmpdir;
});

let unlock: (() => Promise<void>) | null = null;
afterEach(async () => {
  await unlock?.();
  await expect.poll(listCopies).toEqual([]);
});

// The copy contains the key, and commands at level pid see the directory for temporary files.
test("keeps an unfinished backup in the record, where commands do not see it", async () => {
  await blockBackups();
  const pending = await requestBackup("gzip", coordinator.adminToken);
  expect(findCopies(directory)).toEqual([]);
  expect(findCopies(recordDirectory(coordinator.directory))).toHaveLength(1);
  pending.disconnect();
});

test("starts the response of a slow backup early, and sends all of the backup", async () => {
  await blockBackups();
  const { port } = new URL(coordinator.url);
  let hasStarted = false;
  const chunks: Uint8Array[] = [];
  const download = (async () => {
    const bytes = await coordinator.client.backup();
    hasStarted = true;
    for await (const chunk of bytes) chunks.push(chunk);
  })();
  await expect.poll(() => hasStarted).toBe(true);
  const secondBackup = await requestBackup("gzip", coordinator.adminToken, Number(port)).catch(
    (error: unknown) => error,
  );
  expect(secondBackup).toMatchObject({ status: 409, text: expect.stringContaining("DROVER-API-030") });
  expect(chunks).toEqual([]);
  await unlock?.();
  await download;
  expectIntactBackup(Buffer.concat(chunks));
});

test("sends a backup uncompressed to a client that does not accept gzip", async () => {
  await blockBackups();
  const plain = await requestBackup("identity", coordinator.adminToken);
  expect([plain.status, plain.headers["content-encoding"]]).toEqual([200, undefined]);
  await unlock?.();
  expectIntactBackup(await plain.readAll());
  const packed = await requestBackup("gzip", coordinator.adminToken);
  // A quick backup is not compressed, and its length is known.
  if (packed.headers["content-encoding"] === undefined)
    expect(Number(packed.headers["content-length"])).toBe((await packed.readAll()).length);
  else await packed.readAll();
});

test("sends keepalives while a backup is being made", async () => {
  await blockBackups();
  const packed = await requestBackup("gzip", coordinator.adminToken);
  expect(packed.headers["content-encoding"]).toBe("gzip");
  const before = packed.bytes();
  await expect.poll(() => packed.bytes() - before).toBeGreaterThan(20);
  packed.disconnect();
});

test("cancels a backup whose client disconnected, and makes the next one", async () => {
  await blockBackups();
  const abandoned = await requestBackup("gzip", coordinator.adminToken);
  expect(listCopies()).toHaveLength(1);
  abandoned.disconnect();
  await expect.poll(listCopies).toEqual([]);
  const next = await requestBackup("gzip", coordinator.adminToken);
  expect(next.status).toBe(200);
  await unlock?.();
  await next.readAll();
});

test("sends nothing if another coordinator revokes the token during the backup", async () => {
  for (let round = 0; round < 3; round += 1) {
    const admin = await coordinator.client.tokens.create({ role: "admin", subject: "eve" });
    await blockBackups();
    const chunks: Uint8Array[] = [];
    const download = (async () => {
      for await (const chunk of await createClient({ url: coordinator.url, token: admin.token }).backup())
        chunks.push(chunk);
      return "whole";
    })().catch(() => "interrupted");
    await expect.poll(listCopies).toHaveLength(1);
    await otherCoordinator.client.tokens.revoke(admin.token_id);
    await unlock?.();
    expect([await download, chunks]).toEqual(["interrupted", []]);
    await expect.poll(listCopies).toEqual([]);
  }
});

test("removes a killed coordinator's unfinished backups at the next start, but not those of others", async () => {
  const killed = `drover-backup-${hostname()}-999999999-abcdef`;
  const alive = `drover-backup-${hostname()}-${process.ppid}-abcdef`;
  const elsewhere = "drover-backup-another.host-999999999-abcdef";
  const stateDirectory = join(directory, "killed");
  const record = recordDirectory(stateDirectory);
  for (const name of [killed, alive, elsewhere]) {
    mkdirSync(join(record, name), { recursive: true });
    writeFileSync(join(record, name, "drover.db"), "the key");
  }
  const next = await startTestCoordinator({ ...options(), stateDirectory });
  await next.dispose();
  expect(findCopies(record).sort()).toEqual([alive, elsewhere].sort());
});

const listCopies = (): string[] =>
  [coordinator, otherCoordinator].flatMap((each) => findCopies(recordDirectory(each.directory)));
const findCopies = (parent: string): string[] =>
  (existsSync(parent) ? readdirSync(parent) : []).filter((name) => name.includes("backup-") && !name.endsWith(".db"));

/** Locks a table that only a backup reads, to make it slow. Retention, which starts after a second, does not read it. */
async function blockBackups(): Promise<void> {
  const client = new pg.Client({ connectionString: database.url });
  await client.connect();
  await client.query("begin; lock table drover.hooks in access exclusive mode");
  unlock = async () => {
    unlock = null;
    await client.query("rollback");
    await client.end();
  };
}

function expectIntactBackup(bytes: Buffer): void {
  const file = join(directory, `whole-${randomBytes(4).toString("hex")}.db`);
  writeFileSync(file, bytes);
  const copy = openDatabase(file, { readOnly: true });
  expect(copy.prepare("pragma integrity_check").get()).toMatchObject({ integrity_check: "ok" });
  expect(Number(copy.prepare("select count(*) as n from tokens").get()?.["n"])).toBeGreaterThan(0);
  copy.close();
}

interface BackupResponse {
  status: number;
  headers: IncomingMessage["headers"];
  text: string;
  bytes(): number;
  readAll(): Promise<Buffer>;
  disconnect(): void;
}

/** Resolves at the headers of a success, or at the end of a refusal. */
function requestBackup(
  encoding: string,
  token: string,
  port = Number(new URL(coordinator.url).port),
): Promise<BackupResponse> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "accept-encoding": encoding };
    const clientRequest = request({ host: "127.0.0.1", port, method: "POST", path: "/backup", headers, agent: false });
    clientRequest.on("error", reject).on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", () => undefined);
      const whenEnded = new Promise<Buffer>((done) => response.on("close", () => done(Buffer.concat(chunks))));
      const backup = {
        status: response.statusCode ?? 0,
        headers: response.headers,
        text: "",
        bytes: () => chunks.reduce((sum, { length }) => sum + length, 0),
        readAll: () => whenEnded,
        disconnect: () => void clientRequest.destroy(),
      };
      if (backup.status === 200) resolve(backup);
      else void whenEnded.then((bytes) => resolve({ ...backup, text: bytes.toString() }));
    });
    clientRequest.end();
  });
}
