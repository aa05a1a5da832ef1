import { appendFileSync, existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { movable } from "../../../test/fixtures/record/movable.ts";
import { workers } from "../../../test/fixtures/record/processes.ts";
import { recordRuns } from "../../../test/fixtures/record/sample.ts";
import { backupRecord } from "../backup.ts";
import { blobFile } from "../blobs/blobs.ts";
import { verifyPostgres } from "../postgres/audit.ts";
import { restoreRecord } from "../restore.ts";
import { openDatabase } from "../sqlite/driver.ts";
import { databaseFile } from "../../model/state-layout.ts";
import { migrateRecord } from "./migrate-record.ts";

const movableStore = movable();
const { start } = workers("migrator.ts");

describe("a killed migration leaves nothing behind and can be repeated, when it", () => {
  for (const step of [["copying", "events"], ["copying", "contents"], ["comparing", "contents"], ["verifying"]]) {
    it(`was ${step.join(" ")}`, async () => {
      const migrator = start([movableStore.directory, movableStore.url, ...step]);
      await migrator.waitForLines(1);
      expect(migrator.lines).toEqual(["there"]);
      const store = await movableStore.open(50);
      await expect(recordRuns(store, 1)).rejects.toMatchObject({ code: "DROVER-STA-003" });
      migrator.kill();
      await migrator.ended;
      expect(await movableStore.rowsThere()).toEqual([]);
      await recordRuns(store, 1);
      await store.close();
      expect((await movableStore.move()).copied.rows).toMatchObject({ runs: 31, files: 3 });
    });
  }
});

describe("leaves the target empty and the source unchanged when", () => {
  afterEach(async () => {
    expect(await movableStore.rowsThere()).toEqual([]);
    const store = await movableStore.open();
    await recordRuns(store, 1);
    await store.close();
  });

  it("a table refuses a row", async () => {
    await movableStore.inDatabase("alter table files add check (path not like '%20%')");
    await expect(movableStore.move()).rejects.toMatchObject({
      code: "DROVER-STA-009",
      message: expect.stringMatching(/^The table files could not be copied: .*files_path_check/),
    });
  });

  it("a row differs after the copy", async () => {
    await movableStore.inDatabase(`
      create function other() returns trigger language plpgsql as $$ begin new.body := new.body || ' '; return new; end $$;
      create trigger other before insert on events for each row when (new.cursor in (7, 9)) execute function other()`);
    await expect(movableStore.move()).rejects.toMatchObject({
      code: "DROVER-STA-009",
      message: expect.stringMatching(/differs in 2 places, first: events, row 7: its body differs/),
    });
  });

  it("rows are missing or were added", async () => {
    await movableStore.inDatabase(`
      create function lose() returns trigger language plpgsql as $$ begin return null; end $$;
      create function add() returns trigger language plpgsql as $$ begin
        insert into sessions select 'zz', null, 'a', 'b', null, null, null, 1, 'c', 'd' on conflict do nothing; return null; end $$;
      create trigger lose before insert on events for each row when (new.cursor = 1) execute function lose();
      create trigger add after insert on files for each statement execute function add()`);
    await expect(movableStore.move()).rejects.toThrow(/in 2 places, first: events, row 1: it is missing in postgres:/);
  });

  it("contents differ after the copy", async () => {
    await movableStore.inDatabase(`
      create function flip() returns trigger language plpgsql as $$ begin new.bytes := set_byte(new.bytes, 5, 0); return new; end $$;
      create trigger flip before insert on blob_parts for each row execute function flip()`);
    await expect(movableStore.move()).rejects.toThrow(/first: the contents [0-9a-f]{64}/);
  });

  it("contents were changed before", async () => {
    appendFileSync(findSomeContent(), "x");
    await expect(movableStore.move()).rejects.toThrow("have changed since they were stored");
  });

  it("the chain is broken", async () => {
    tamper("update audit_rows set body = body || ' ' where no = 7");
    await expect(movableStore.move()).rejects.toMatchObject({
      code: "DROVER-AUD-002",
      message: expect.stringContaining("the row was changed, or sealed with a different key"),
    });
  });

  it("the end of the chain was truncated", async () => {
    tamper("delete from audit_rows where batch_no = 1; delete from audit_batches");
    await expect(movableStore.move()).rejects.toThrow("audit.head records 60 rows, but the chain has only 0");
  });

  it("the key is missing", async () => {
    const key = readFileSync(join(movableStore.directory, "audit.key"), "utf8");
    rmSync(join(movableStore.directory, "audit.key"));
    await expect(movableStore.move()).rejects.toMatchObject({ code: "DROVER-AUD-001" });
    writeFileSync(join(movableStore.directory, "audit.key"), key, { mode: 0o600 });
  });

  it("the database server cannot be reached", async () => {
    const url = new URL(movableStore.url);
    url.pathname = "/nobody";
    await expect(
      migrateRecord({ directory: movableStore.directory, url: url.href, now: movableStore.now }),
    ).rejects.toMatchObject({
      code: "DROVER-STA-006",
    });
  });

  it("others write to the source for too long", async () => {
    const writer = openDatabase(databaseFile(movableStore.directory), {});
    writer.exec("begin immediate");
    const locked = migrateRecord({
      directory: movableStore.directory,
      url: movableStore.url,
      now: movableStore.now,
      lockWaitMs: 100,
    });
    await expect(locked).rejects.toMatchObject({ code: "DROVER-STA-003" });
    writer.close();
  });
});

it("never overwrites a record, not even on a second run", async () => {
  const { audit } = await movableStore.move();
  await expect(movableStore.move()).rejects.toMatchObject({
    code: "DROVER-USE-001",
    message: expect.stringContaining("is not empty"),
  });
  await backupRecord(movableStore.fleetOptions, join(movableStore.root, "file"), movableStore.now);
  await expect(
    restoreRecord(movableStore.fleetOptions, join(movableStore.root, "file"), { now: movableStore.now }),
  ).rejects.toThrow("already contains a record");
  expect(await verifyPostgres(movableStore.fleetOptions, undefined)).toEqual(audit);
});

it("copies files whose contents were already lost, and counts them", async () => {
  rmSync(findSomeContent());
  const { copied } = await movableStore.move();
  expect(copied).toMatchObject({ contents: 2, missing: 1, rows: { files: 3 } });
});

it("copies damage that the chain has recorded", async () => {
  rmSync(join(movableStore.directory, "audit.head"));
  const store = await movableStore.open();
  await recordRuns(store, 1);
  await store.close();
  const { audit } = await movableStore.move();
  expect(audit).toMatchObject({ ok: false, first_bad: { wasReported: true, row_no: 61 } });
  expect(await verifyPostgres(movableStore.fleetOptions, undefined)).toEqual(audit);
  await backupRecord(movableStore.fleetOptions, join(movableStore.root, "file"), movableStore.now);
  const { audit: restored } = await restoreRecord(
    { directory: join(movableStore.root, "back") },
    join(movableStore.root, "file"),
    {
      now: movableStore.now,
    },
  );
  expect(restored).toEqual(audit);
});

function tamper(sql: string): void {
  const db = openDatabase(databaseFile(movableStore.directory), {});
  db.exec(sql);
  db.close();
}

function findSomeContent(): string {
  const names = readdirSync(join(movableStore.directory, "files"), { recursive: true }).map(String);
  const file = blobFile(movableStore.directory, names.find((name) => name.length > 64)?.slice(3) ?? "");
  expect(existsSync(file)).toBe(true);
  return file;
}
