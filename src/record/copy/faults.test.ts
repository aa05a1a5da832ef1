import { appendFileSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { fillRecord } from "../../../test/fixtures/record/fill.ts";
import { runWithFiles, sha256Of } from "../../../test/fixtures/record/files.ts";
import { workers } from "../../../test/fixtures/record/processes.ts";
import { recordRuns } from "../../../test/fixtures/record/sample.ts";
import { type FreshDatabase, freshDatabase } from "../../../test/postgres/fresh-database.ts";
import { readKey } from "../audit/key.ts";
import { verifyAudit } from "../audit/verify.ts";
import { backupRecord } from "../backup.ts";
import { blobFile } from "../blobs/blobs.ts";
import { openStore } from "../open.ts";
import { verifyPostgres } from "../postgres/audit.ts";
import { connect } from "../postgres/client.ts";
import { migrate } from "../postgres/migrations/migrate.ts";
import { openPostgresStore } from "../postgres/open.ts";
import { restoreRecord } from "../restore.ts";
import { openDatabase } from "../sqlite/driver.ts";
import { databaseFile } from "../state-directory.ts";
import { migrateRecord } from "./migrate-record.ts";
import { tables } from "./tables.ts";

const { start } = workers("migrator.ts");
let folder: string;
let directory: string;
let database: FreshDatabase;
const now = new Date();
const open = (waitMs = 5000) =>
  openStore({ directory, now: () => new Date(), createIfMissing: true, lockWaitMs: waitMs });
const moved = () => migrateRecord({ directory, url: database.url, now });
const place = () => ({ url: database.url, secret: readKey(directory) ?? new Uint8Array() });

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "drover-copy-"));
  directory = join(folder, "state");
  database = await freshDatabase();
  const store = await open();
  await fillRecord(store, { runs: 30 });
  await store.close();
});
afterEach(async () => {
  await database.drop();
  rmSync(folder, { recursive: true, force: true });
});

describe("a migration that is killed leaves nothing, and can be done again, when it", () => {
  for (const words of [["copying", "events"], ["copying", "contents"], ["comparing", "contents"], ["verifying"]]) {
    it(`was ${words.join(" ")}`, async () => {
      const migrator = start([directory, database.url, ...words]);
      await migrator.said(1);
      expect(migrator.lines).toEqual(["there"]);
      const store = await open(50);
      await expect(recordRuns(store, 1)).rejects.toMatchObject({ code: "DROVER-STA-003" });
      migrator.kill();
      await migrator.ended;
      expect(await rowsThere()).toEqual([]);
      await recordRuns(store, 1);
      await store.close();
      expect((await moved()).copied.rows).toMatchObject({ runs: 31, files: 3 });
    });
  }
});

describe("leaves the target empty and the source as it was when", () => {
  afterEach(async () => {
    expect(await rowsThere()).toEqual([]);
    const store = await open();
    await recordRuns(store, 1);
    await store.close();
  });

  it("a table refuses a row", async () => {
    await inDatabase("alter table files add check (path not like '%20%')");
    await expect(moved()).rejects.toMatchObject({
      code: "DROVER-STA-009",
      message: expect.stringMatching(/^The table files could not be copied: .*files_path_check/),
    });
  });

  it("something comes out other than it went in", async () => {
    await inDatabase(`
      create function other() returns trigger language plpgsql as $$ begin new.body := new.body || ' '; return new; end $$;
      create trigger other before insert on events for each row when (new.cursor in (7, 9)) execute function other()`);
    await expect(moved()).rejects.toMatchObject({
      code: "DROVER-STA-009",
      message: expect.stringMatching(/is not the same in 2 places, first: events, row 7: its body is another/),
    });
  });

  it("rows are lost, or others are there", async () => {
    await inDatabase(`
      create function lose() returns trigger language plpgsql as $$ begin return null; end $$;
      create function add() returns trigger language plpgsql as $$ begin
        insert into sessions select 'zz', null, 'a', 'b', null, null, null, 1, 'c', 'd' on conflict do nothing; return null; end $$;
      create trigger lose before insert on events for each row when (new.cursor = 1) execute function lose();
      create trigger add after insert on files for each statement execute function add()`);
    await expect(moved()).rejects.toThrow(/in 2 places, first: events, row 1: it is not in postgres:/);
  });

  it("contents come out other than they went in", async () => {
    await inDatabase(`
      create function flip() returns trigger language plpgsql as $$ begin new.bytes := set_byte(new.bytes, 5, 0); return new; end $$;
      create trigger flip before insert on blob_parts for each row execute function flip()`);
    await expect(moved()).rejects.toThrow(/first: the contents [0-9a-f]{64}/);
  });

  it("contents were changed before, by whoever did", async () => {
    appendFileSync(someContent(), "x");
    await expect(moved()).rejects.toThrow("are not the ones that were stored");
  });

  it("the chain is broken", async () => {
    tamper("update audit_rows set body = body || ' ' where no = 7");
    await expect(moved()).rejects.toMatchObject({
      code: "DROVER-AUD-002",
      message: expect.stringContaining("the row was changed, or made with another key"),
    });
  });

  it("the end of the chain was cut off", async () => {
    tamper("delete from audit_rows where batch_no = 1; delete from audit_batches");
    await expect(moved()).rejects.toThrow("audit.head says 60 rows were written, and there are 0");
  });

  it("the key is gone", async () => {
    const key = readFileSync(join(directory, "audit.key"), "utf8");
    rmSync(join(directory, "audit.key"));
    await expect(moved()).rejects.toMatchObject({ code: "DROVER-AUD-001" });
    writeFileSync(join(directory, "audit.key"), key, { mode: 0o600 });
  });

  it("nobody is there", async () => {
    const url = new URL(database.url);
    url.pathname = "/nobody";
    await expect(migrateRecord({ directory, url: url.href, now })).rejects.toMatchObject({ code: "DROVER-STA-006" });
  });

  it("others write to the source for too long", async () => {
    const writer = openDatabase(databaseFile(directory), {});
    writer.exec("begin immediate");
    const locked = migrateRecord({ directory, url: database.url, now, lockWaitMs: 100 });
    await expect(locked).rejects.toMatchObject({ code: "DROVER-STA-003" });
    writer.close();
  });
});

it("writes over no record, not even a second time", async () => {
  const { audit } = await moved();
  await expect(moved()).rejects.toMatchObject({
    code: "DROVER-USE-001",
    message: expect.stringContaining("is not empty"),
  });
  await backupRecord(place(), join(folder, "file"), now);
  await expect(restoreRecord(place(), join(folder, "file"))).rejects.toThrow("There is a record");
  expect(await verifyPostgres(place(), undefined)).toEqual(audit);
});

it("takes files along whose contents were lost before, and says how many", async () => {
  rmSync(someContent());
  const { copied } = await moved();
  expect(copied).toMatchObject({ contents: 2, missing: 1, rows: { files: 3 } });
});

it("takes along what the chain tells of damage before", async () => {
  rmSync(join(directory, "audit.head"));
  const store = await open();
  await recordRuns(store, 1);
  await store.close();
  const { audit } = await moved();
  expect(audit).toMatchObject({ ok: false, first_bad: { told: true, row_no: 61 } });
  expect(await verifyPostgres(place(), undefined)).toEqual(audit);
  await backupRecord(place(), join(folder, "file"), now);
  const { audit: restored } = await restoreRecord({ directory: join(folder, "back") }, join(folder, "file"));
  expect(restored).toEqual(audit);
});

describe("a backup", () => {
  it("of a state directory can be restored into PostgreSQL, with its own secret only", async () => {
    const store = await open();
    const run_id = await runWithFiles(store, [Buffer.from("a"), Buffer.alloc(0), Buffer.alloc(3_000_000, "b")]);
    await store.close();
    const { head } = await backupRecord({ directory }, join(folder, "file"), now);
    const other = { url: database.url, secret: Buffer.alloc(32, 1) };
    await expect(restoreRecord(other, join(folder, "file"))).rejects.toThrow("The secret is not the one");
    expect(await rowsThere()).toEqual([]);
    const restored = await restoreRecord(place(), join(folder, "file"));
    expect(restored).toEqual({ made_at: now.toISOString(), audit: await verifyAudit({ directory, head }) });
    const there = await openPostgresStore(place());
    expect(await there.read.files(run_id)).toMatchObject([{ size: 1 }, { size: 0 }, { size: 3_000_000 }]);
    expect((await there.blobs.open(sha256Of(Buffer.alloc(0))))?.size).toBe(0);
    await there.close();
  });

  it("that was changed is not restored into PostgreSQL, and neither is what is none", async () => {
    await backupRecord({ directory }, join(folder, "file"), now);
    const copy = openDatabase(join(folder, "file"), {});
    copy.exec("update audit_rows set at = 'x' where no = 3");
    copy.close();
    await expect(restoreRecord(place(), join(folder, "file"))).rejects.toThrow("its audit chain is broken");
    await expect(restoreRecord(place(), databaseFile(directory))).rejects.toThrow("not a backup");
    await expect(restoreRecord(place(), join(folder, "none"))).rejects.toThrow("does not exist");
    expect(await rowsThere()).toEqual([]);
  });

  it("of an older Drover is brought up to date aside", async () => {
    await backupRecord({ directory }, join(folder, "file"), now);
    const copy = openDatabase(join(folder, "file"), {});
    copy.exec("alter table agent_revs drop column type; pragma user_version = 4");
    copy.close();
    const before = readFileSync(join(folder, "file"));
    expect((await restoreRecord(place(), join(folder, "file"))).audit).toMatchObject({ ok: true });
    expect(readFileSync(join(folder, "file")).equals(before)).toBe(true);
  });

  it("of PostgreSQL is made with the record's own secret only, and never in part", async () => {
    await moved();
    const file = join(folder, "file");
    const other = { url: database.url, secret: Buffer.alloc(32, 1) };
    await expect(backupRecord(other, file, now)).rejects.toMatchObject({ code: "DROVER-AUD-001" });
    await inDatabase("update blob_parts set bytes = set_byte(bytes, 0, get_byte(bytes, 0) # 1)");
    await expect(backupRecord(place(), file, now)).rejects.toThrow("are not the ones that were stored");
    expect(readdirSync(folder)).toEqual(["state"]);
    writeFileSync(file, "mine");
    await expect(backupRecord(place(), file, now)).rejects.toThrow("exists already");
    expect(readFileSync(file, "utf8")).toBe("mine");
    await expect(backupRecord({ ...place(), url: await emptyDatabase() }, join(folder, "two"), now)).rejects.toThrow(
      "There is no record",
    );
  });

  it("of PostgreSQL is as of one moment, while others write", async () => {
    const { audit } = await moved();
    const store = await openPostgresStore(place());
    let writing = true;
    const written: string[] = [];
    const writes = (async () => {
      while (writing) written.push(...(await recordRuns(store, 1)));
    })();
    await expect.poll(() => written.length).toBeGreaterThan(3);
    const before = [...written];
    await backupRecord(place(), join(folder, "file"), now);
    writing = false;
    await writes;
    await store.close();
    const { audit: then } = await restoreRecord({ directory: join(folder, "back") }, join(folder, "file"));
    expect(then).toMatchObject({ ok: true });
    expect(then.rows).toBeGreaterThanOrEqual(audit.rows + 2 * before.length);
    expect(await verifyPostgres(place(), then.head)).toMatchObject({ ok: true });
    const back = await openStore({ directory: join(folder, "back"), now: () => new Date() });
    for (const run_id of before) expect(await back.read.events(run_id, 0, 10)).toHaveLength(3);
    await back.close();
  });
});

const others: FreshDatabase[] = [];
afterEach(async () => {
  for (const other of others.splice(0)) await other.drop();
});

async function emptyDatabase(): Promise<string> {
  const other = await freshDatabase();
  others.push(other);
  return other.url;
}

/** Tables of the target that have rows it was not made with. */
async function rowsThere(): Promise<string[]> {
  const client = await connect(database.url);
  const made = await client.exec("select to_regclass('drover.runs') is not null as made");
  const found: string[] = [];
  if (made[0]?.["made"] === 1)
    for (const name of [...tables.map((table) => table.name), "blobs", "blob_parts"]) {
      const [row] = await client.exec(`select count(*) as n from ${name}`);
      if (row?.["n"] !== (name === "demands" ? 1 : 0)) found.push(name);
    }
  client.end();
  return found;
}

async function inDatabase(sql: string): Promise<void> {
  await migrate(database.url);
  const client = await connect(database.url);
  await client.exec(sql);
  client.end();
}

function tamper(sql: string): void {
  const db = openDatabase(databaseFile(directory), {});
  db.exec(sql);
  db.close();
}

function someContent(): string {
  const names = readdirSync(join(directory, "files"), { recursive: true }).map(String);
  const file = blobFile(directory, names.find((name) => name.length > 64)?.slice(3) ?? "");
  expect(existsSync(file)).toBe(true);
  return file;
}
