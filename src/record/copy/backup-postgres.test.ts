import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { runWithFiles, hashBytes } from "../../../test/fixtures/record/files.ts";
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

const movableStore = movable();

describe("a backup", () => {
  it("of a state directory can be restored into PostgreSQL, but only with its own secret", async () => {
    const store = await movableStore.open();
    const run_id = await runWithFiles(store, [Buffer.from("a"), Buffer.alloc(0), Buffer.alloc(3_000_000, "b")]);
    await store.close();
    const { head } = await backupRecord(
      { directory: movableStore.directory },
      join(movableStore.root, "file"),
      movableStore.now,
    );
    const other = { url: movableStore.url, secret: Buffer.alloc(32, 1) };
    await expect(restoreRecord(other, join(movableStore.root, "file"), { now: movableStore.now })).rejects.toThrow(
      "The secret does not match",
    );
    expect(await movableStore.rowsThere()).toEqual([]);
    const restored = await restoreRecord(movableStore.fleetOptions, join(movableStore.root, "file"), {
      now: movableStore.now,
    });
    expect(restored).toEqual({
      made_at: movableStore.now.toISOString(),
      audit: await verifyAudit({ directory: movableStore.directory, head }),
      revoked_tokens: 0,
    });
    const restoredStore = await openPostgresStore(movableStore.fleetOptions);
    expect(await restoredStore.read.files(run_id)).toMatchObject([{ size: 1 }, { size: 0 }, { size: 3_000_000 }]);
    expect((await restoredStore.blobs.open(hashBytes(Buffer.alloc(0))))?.size).toBe(0);
    await restoredStore.close();
  });

  it("is not restored into PostgreSQL if it was changed or is not a backup", async () => {
    await backupRecord({ directory: movableStore.directory }, join(movableStore.root, "file"), movableStore.now);
    const copy = openDatabase(join(movableStore.root, "file"), {});
    copy.exec("update audit_rows set at = 'x' where no = 3");
    copy.close();
    await expect(
      restoreRecord(movableStore.fleetOptions, join(movableStore.root, "file"), { now: movableStore.now }),
    ).rejects.toThrow("its audit chain is broken");
    await expect(
      restoreRecord(movableStore.fleetOptions, databaseFile(movableStore.directory), { now: movableStore.now }),
    ).rejects.toThrow("cannot be restored");
    await expect(
      restoreRecord(movableStore.fleetOptions, join(movableStore.root, "none"), { now: movableStore.now }),
    ).rejects.toThrow("does not exist");
    expect(await movableStore.rowsThere()).toEqual([]);
  });

  for (const [version, undo] of [
    [5, undoIndexes.sqlite],
    [4, `${undoIndexes.sqlite}; alter table agent_revs drop column type`],
  ] as const)
    it(`of schema version ${version} is migrated when it is restored, and the file stays unchanged`, async () => {
      const file = join(movableStore.root, "file");
      await backupRecord({ directory: movableStore.directory }, file, movableStore.now);
      const copy = openDatabase(file, {});
      copy.exec(`${undo}; pragma user_version = ${version}`);
      copy.close();
      const before = readFileSync(file);
      const copyDirectory = join(movableStore.root, "new", "record");
      let copies: string[] = [];
      const { audit } = await restoreRecord(movableStore.fleetOptions, file, {
        now: movableStore.now,
        copyDirectory,
        beforePublish: () => void (copies = readdirSync(copyDirectory)),
      });
      expect(audit).toMatchObject({ ok: true });
      // The copy contains the key.
      expect(copies).toEqual([expect.stringMatching(/^drover-restore-/)]);
      expect(readdirSync(copyDirectory)).toEqual([]);
      expect(
        (await restoreRecord({ directory: join(movableStore.root, "back") }, file, { now: movableStore.now })).audit,
      ).toEqual(audit);
      expect(readFileSync(file).equals(before)).toBe(true);
      const restoredDatabase = openDatabase(databaseFile(join(movableStore.root, "back")), {});
      expect(restoredDatabase.prepare("pragma user_version").get()).toEqual({ user_version: schemaVersion });
      restoredDatabase.close();
    });

  it("of PostgreSQL, from before and after an upgrade, can be restored into either engine", async () => {
    await movableStore.move();
    await movableStore.inDatabase(`${undoIndexes.postgres}; update schema_version set version = 1`);
    // A backup migrates the record first.
    await backupRecord(movableStore.fleetOptions, join(movableStore.root, "file"), movableStore.now);
    const location = { ...movableStore.fleetOptions, url: await movableStore.emptyDatabase() };
    const { audit } = await restoreRecord(location, join(movableStore.root, "file"), { now: movableStore.now });
    expect(audit).toMatchObject({ ok: true });
    expect(
      (
        await restoreRecord({ directory: join(movableStore.root, "back") }, join(movableStore.root, "file"), {
          now: movableStore.now,
        })
      ).audit,
    ).toEqual(audit);
    const store = await openStore({ directory: join(movableStore.root, "back"), now: () => new Date() });
    await recordRuns(store, 1);
    await store.close();
  });

  it("of PostgreSQL requires the record's own secret, and is never partial", async () => {
    await movableStore.move();
    const file = join(movableStore.root, "file");
    const other = { url: movableStore.url, secret: Buffer.alloc(32, 1) };
    await expect(backupRecord(other, file, movableStore.now)).rejects.toMatchObject({ code: "DROVER-AUD-001" });
    await movableStore.inDatabase("update blob_parts set bytes = set_byte(bytes, 0, get_byte(bytes, 0) # 1)");
    await expect(backupRecord(movableStore.fleetOptions, file, movableStore.now)).rejects.toThrow(
      "have changed since they were stored",
    );
    expect(readdirSync(movableStore.root)).toEqual(["state"]);
    writeFileSync(file, "other file");
    await expect(backupRecord(movableStore.fleetOptions, file, movableStore.now)).rejects.toThrow("already exists");
    expect(readFileSync(file, "utf8")).toBe("other file");
    await expect(
      backupRecord(
        { ...movableStore.fleetOptions, url: await movableStore.emptyDatabase() },
        join(movableStore.root, "two"),
        movableStore.now,
      ),
    ).rejects.toThrow("There is no record");
  });

  it("of PostgreSQL is a consistent snapshot while others write", async () => {
    const { audit } = await movableStore.move();
    const store = await openPostgresStore(movableStore.fleetOptions);
    let writing = true;
    const written: string[] = [];
    const writes = (async () => {
      while (writing) written.push(...(await recordRuns(store, 1)));
    })();
    await expect.poll(() => written.length).toBeGreaterThan(3);
    const before = [...written];
    await backupRecord(movableStore.fleetOptions, join(movableStore.root, "file"), movableStore.now);
    writing = false;
    await writes;
    await store.close();
    const { audit: restoredAudit } = await restoreRecord(
      { directory: join(movableStore.root, "back") },
      join(movableStore.root, "file"),
      {
        now: movableStore.now,
      },
    );
    expect(restoredAudit).toMatchObject({ ok: true });
    expect(restoredAudit.rows).toBeGreaterThanOrEqual(audit.rows + 2 * before.length);
    expect(await verifyPostgres(movableStore.fleetOptions, restoredAudit.head)).toMatchObject({ ok: true });
    const restoredStore = await openStore({ directory: join(movableStore.root, "back"), now: () => new Date() });
    for (const run_id of before) expect(await restoredStore.read.events(run_id, 0, 10)).toHaveLength(3);
    await restoredStore.close();
  });
});
