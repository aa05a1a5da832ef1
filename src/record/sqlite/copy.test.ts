import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { copyDatabase, openDatabase } from "./driver.ts";

test("a copy made while rows are written is consistent", async () => {
  const directory = mkdtempSync(join(tmpdir(), "drover-copy-"));
  const file = join(directory, "a.db");
  const database = openDatabase(file, {});
  try {
    database.exec("pragma journal_mode = wal; create table t (x); begin");
    const insert = database.prepare("insert into t values (?)");
    for (let n = 0; n < 20_000; n += 1) insert.run("x".repeat(100));
    database.exec("commit");
    const copying = copyDatabase(file, join(directory, "b.db"));
    for (let n = 0; n < 100; n += 1) insert.run("late");
    await copying;
    const copy = openDatabase(join(directory, "b.db"), { readOnly: true });
    expect(copy.prepare("pragma integrity_check").get()).toMatchObject({ integrity_check: "ok" });
    expect(Number(copy.prepare("select count(*) as n from t").get()?.["n"])).toBeGreaterThanOrEqual(20_000);
    copy.close();
  } finally {
    database.close();
    rmSync(directory, { recursive: true, force: true });
  }
});
