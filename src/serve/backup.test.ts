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
let here: TestCoordinator;
/** Another coordinator on the same record. */
let there: TestCoordinator;
let directory: string;
const secret = randomBytes(32);
const options = () => ({ database: { url: database.url, secret }, keepaliveMs: 100 });

const usual = process.env["TMPDIR"];
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "drover-backups-"));
  process.env["TMPDIR"] = directory;
  database = await freshDatabase();
  here = await startTestCoordinator(options());
  there = await startTestCoordinator(options());
});
afterAll(async () => {
  expect([...here.defects, ...there.defects]).toEqual([]);
  await Promise.all([here.dispose(), there.dispose()]);
  await database.drop();
  rmSync(directory, { recursive: true, force: true });
  if (usual === undefined) delete process.env["TMPDIR"];
  else process.env["TMPDIR"] = usual;
});

let unlock: (() => Promise<void>) | null = null;
afterEach(async () => {
  await unlock?.();
  await expect.poll(copies).toEqual([]);
});

// It contains the key, and commands at level pid see the directory for temporary files.
test("keeps an unfinished backup in the record, where commands do not see it", async () => {
  await blockBackups();
  const pending = await ask("gzip", here.adminToken);
  expect(findCopies(directory)).toEqual([]);
  expect(findCopies(recordDirectory(here.directory))).toHaveLength(1);
  pending.disconnect();
});

test("a slow backup starts its response early and is complete", async () => {
  await blockBackups();
  const { port } = new URL(here.url);
  let answered = false;
  const chunks: Uint8Array[] = [];
  const fetched = (async () => {
    const bytes = await here.client.backup();
    answered = true;
    for await (const chunk of bytes) chunks.push(chunk);
  })();
  await expect.poll(() => answered).toBe(true);
  const raw = await ask("gzip", here.adminToken, Number(port)).catch((error: unknown) => error);
  expect(raw).toMatchObject({ status: 409, text: expect.stringContaining("DROVER-API-030") });
  expect(chunks).toEqual([]);
  await unlock?.();
  await fetched;
  expectWhole(Buffer.concat(chunks));
});

test("sends a backup uncompressed to a client that does not accept gzip", async () => {
  await blockBackups();
  const plain = await ask("identity", here.adminToken);
  expect([plain.status, plain.headers["content-encoding"]]).toEqual([200, undefined]);
  await unlock?.();
  expectWhole(await plain.whole());
  const packed = await ask("gzip", here.adminToken);
  // A quick backup is not compressed, and its length is known.
  if (packed.headers["content-encoding"] === undefined)
    expect(Number(packed.headers["content-length"])).toBe((await packed.whole()).length);
  else await packed.whole();
});

test("sends keepalives while a backup is being made", async () => {
  await blockBackups();
  const packed = await ask("gzip", here.adminToken);
  expect(packed.headers["content-encoding"]).toBe("gzip");
  const before = packed.bytes();
  await expect.poll(() => packed.bytes() - before).toBeGreaterThan(20);
  packed.disconnect();
});

test("cancels a backup whose client disconnected, and makes the next one", async () => {
  await blockBackups();
  const left = await ask("gzip", here.adminToken);
  expect(copies()).toHaveLength(1);
  left.disconnect();
  await expect.poll(copies).toEqual([]);
  const next = await ask("gzip", here.adminToken);
  expect(next.status).toBe(200);
  await unlock?.();
  await next.whole();
});

test("sends nothing if the token is revoked meanwhile at another coordinator", async () => {
  for (let round = 0; round < 3; round += 1) {
    const admin = await here.client.tokens.create({ role: "admin", subject: "eve" });
    await blockBackups();
    const chunks: Uint8Array[] = [];
    const cut = (async () => {
      for await (const chunk of await createClient({ url: here.url, token: admin.token }).backup()) chunks.push(chunk);
      return "whole";
    })().catch(() => "cut");
    await expect.poll(copies).toHaveLength(1);
    await there.client.tokens.revoke(admin.token_id);
    await unlock?.();
    expect([await cut, chunks]).toEqual(["cut", []]);
    await expect.poll(copies).toEqual([]);
  }
});

test("removes leftovers of a killed coordinator at the next start, but no others", async () => {
  const gone = `drover-backup-${hostname()}-999999999-abcdef`;
  const alive = `drover-backup-${hostname()}-${process.ppid}-abcdef`;
  const elsewhere = "drover-backup-another.host-999999999-abcdef";
  const stateDirectory = join(directory, "killed");
  const record = recordDirectory(stateDirectory);
  for (const name of [gone, alive, elsewhere]) {
    mkdirSync(join(record, name), { recursive: true });
    writeFileSync(join(record, name, "drover.db"), "the key");
  }
  const next = await startTestCoordinator({ ...options(), stateDirectory });
  await next.dispose();
  expect(findCopies(record).sort()).toEqual([alive, elsewhere].sort());
});

const copies = (): string[] =>
  [here, there].flatMap((coordinator) => findCopies(recordDirectory(coordinator.directory)));
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

function expectWhole(bytes: Buffer): void {
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
  whole(): Promise<Buffer>;
  disconnect(): void;
}

/** Resolves with the headers of a success, or with a complete refusal. */
function ask(encoding: string, token: string, port = Number(new URL(here.url).port)): Promise<BackupResponse> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${token}`, "accept-encoding": encoding };
    const sent = request({ host: "127.0.0.1", port, method: "POST", path: "/backup", headers, agent: false });
    sent.on("error", reject).on("response", (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk: Buffer) => chunks.push(chunk)).on("error", () => undefined);
      const ended = new Promise<Buffer>((done) => response.on("close", () => done(Buffer.concat(chunks))));
      const backup = {
        status: response.statusCode ?? 0,
        headers: response.headers,
        text: "",
        bytes: () => chunks.reduce((sum, { length }) => sum + length, 0),
        whole: () => ended,
        disconnect: () => void sent.destroy(),
      };
      if (backup.status === 200) resolve(backup);
      else void ended.then((bytes) => resolve({ ...backup, text: bytes.toString() }));
    });
    sent.end();
  });
}
