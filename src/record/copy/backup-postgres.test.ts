import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runWithFiles, sha256Of } from "../../../test/fixtures/record/files.ts";
import { movable } from "../../../test/fixtures/record/movable.ts";
import { recordRuns } from "../../../test/fixtures/record/sample.ts";
import { undoIndexes } from "../../../test/fixtures/record/undo-indexes.ts";
import { verifyAudit } from "../audit/verify.ts";
import { backupRecord } from "../backup.ts";
import { openStore } from "../open.ts";
import { verifyPostgres } from "../postgres/audit.ts";
import { openPostgresStore } from "../postgres/open.ts";
import { restoreRecord } from "../restore.ts";
import { openDatabase } from "../sqlite/driver.ts";
import { schemaVersion } from "../sqlite/migrations/version.ts";
import { databaseFile } from "../../model/state-layout.ts";

const one = movable();

describe("a backup", () => {
  it("of a state directory can be restored into PostgreSQL, but only with its own secret", async () => {
    const store = await one.open();
    const run_id = await runWithFiles(store, [Buffer.from("a"), Buffer.alloc(0), Buffer.alloc(3_000_000, "b")]);
    await store.close();
    const { head } = await backupRecord({ directory: one.directory }, join(one.folder, "file"), one.now);
    const other = { url: one.url, secret: Buffer.alloc(32, 1) };
    await expect(restoreRecord(other, join(one.folder, "file"), { now: one.now })).rejects.toThrow(
      "The secret does not match",
    );
    expect(await one.rowsThere()).toEqual([]);
    const restored = await restoreRecord(one.place, join(one.folder, "file"), { now: one.now });
    expect(restored).toEqual({
      made_at: one.now.toISOString(),
      audit: await verifyAudit({ directory: one.directory, head }),
      revoked_tokens: 0,
    });
    const there = await openPostgresStore(one.place);
    expect(await there.read.files(run_id)).toMatchObject([{ size: 1 }, { size: 0 }, { size: 3_000_000 }]);
    expect((await there.blobs.open(sha256Of(Buffer.alloc(0))))?.size).toBe(0);
    await there.close();
  });

  it("is not restored into PostgreSQL if it was changed or is not a backup", async () => {
    await backupRecord({ directory: one.directory }, join(one.folder, "file"), one.now);
    const copy = openDatabase(join(one.folder, "file"), {});
    copy.exec("update audit_rows set at = 'x' where no = 3");
    copy.close();
    await expect(restoreRecord(one.place, join(one.folder, "file"), { now: one.now })).rejects.toThrow(
      "its audit chain is broken",
    );
    await expect(restoreRecord(one.place, databaseFile(one.directory), { now: one.now })).rejects.toThrow(
      "cannot be restored",
    );
    await expect(restoreRecord(one.place, join(one.folder, "none"), { now: one.now })).rejects.toThrow(
      "does not exist",
    );
    expect(await one.rowsThere()).toEqual([]);
  });

  for (const [version, undo] of [
    [5, undoIndexes.sqlite],
    [4, `${undoIndexes.sqlite}; alter table agent_revs drop column type`],
  ] as const)
    it(`of schema version ${version} is migrated when it is restored, and the file stays unchanged`, async () => {
      const file = join(one.folder, "file");
      await backupRecord({ directory: one.directory }, file, one.now);
      const copy = openDatabase(file, {});
      copy.exec(`${undo}; pragma user_version = ${version}`);
      copy.close();
      const before = readFileSync(file);
      const { audit } = await restoreRecord(one.place, file, { now: one.now });
      expect(audit).toMatchObject({ ok: true });
      expect((await restoreRecord({ directory: join(one.folder, "back") }, file, { now: one.now })).audit).toEqual(
        audit,
      );
      expect(readFileSync(file).equals(before)).toBe(true);
      const back = openDatabase(databaseFile(join(one.folder, "back")), {});
      expect(back.prepare("pragma user_version").get()).toEqual({ user_version: schemaVersion });
      back.close();
    });

  it("of PostgreSQL, from before and after an upgrade, can be restored into either engine", async () => {
    await one.move();
    await one.inDatabase(`${undoIndexes.postgres}; update schema_version set version = 1`);
    // A backup migrates the record first.
    await backupRecord(one.place, join(one.folder, "file"), one.now);
    const place = { ...one.place, url: await one.emptyDatabase() };
    const { audit } = await restoreRecord(place, join(one.folder, "file"), { now: one.now });
    expect(audit).toMatchObject({ ok: true });
    expect(
      (await restoreRecord({ directory: join(one.folder, "back") }, join(one.folder, "file"), { now: one.now })).audit,
    ).toEqual(audit);
    const store = await openStore({ directory: join(one.folder, "back"), now: () => new Date() });
    await recordRuns(store, 1);
    await store.close();
  });

  it("of PostgreSQL requires the record's own secret, and is never partial", async () => {
    await one.move();
    const file = join(one.folder, "file");
    const other = { url: one.url, secret: Buffer.alloc(32, 1) };
    await expect(backupRecord(other, file, one.now)).rejects.toMatchObject({ code: "DROVER-AUD-001" });
    await one.inDatabase("update blob_parts set bytes = set_byte(bytes, 0, get_byte(bytes, 0) # 1)");
    await expect(backupRecord(one.place, file, one.now)).rejects.toThrow("were changed since they were stored");
    expect(readdirSync(one.folder)).toEqual(["state"]);
    writeFileSync(file, "mine");
    await expect(backupRecord(one.place, file, one.now)).rejects.toThrow("already exists");
    expect(readFileSync(file, "utf8")).toBe("mine");
    await expect(
      backupRecord({ ...one.place, url: await one.emptyDatabase() }, join(one.folder, "two"), one.now),
    ).rejects.toThrow("There is no record");
  });

  it("of PostgreSQL is a consistent snapshot while others write", async () => {
    const { audit } = await one.move();
    const store = await openPostgresStore(one.place);
    let writing = true;
    const written: string[] = [];
    const writes = (async () => {
      while (writing) written.push(...(await recordRuns(store, 1)));
    })();
    await expect.poll(() => written.length).toBeGreaterThan(3);
    const before = [...written];
    await backupRecord(one.place, join(one.folder, "file"), one.now);
    writing = false;
    await writes;
    await store.close();
    const { audit: then } = await restoreRecord({ directory: join(one.folder, "back") }, join(one.folder, "file"), {
      now: one.now,
    });
    expect(then).toMatchObject({ ok: true });
    expect(then.rows).toBeGreaterThanOrEqual(audit.rows + 2 * before.length);
    expect(await verifyPostgres(one.place, then.head)).toMatchObject({ ok: true });
    const back = await openStore({ directory: join(one.folder, "back"), now: () => new Date() });
    for (const run_id of before) expect(await back.read.events(run_id, 0, 10)).toHaveLength(3);
    await back.close();
  });
});
