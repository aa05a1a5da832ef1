// Small versions of two rows of docs/torture.md: a record is the same after it was moved.
import { beforeAll, expect, test } from "vitest";
import { backups } from "../../torture/backups.ts";
import type { Tools } from "../../torture/finding.ts";
import { migration } from "../../torture/migration.ts";
import { freshDatabase } from "../postgres/fresh-database.ts";
import { bundle } from "./bundle.ts";
import { root } from "./drover.ts";

let tools: Tools;
beforeAll(async () => {
  const host = await bundle("torture/host.ts");
  tools = { root, host, execMany: "", engine: "sqlite", openDatabase: freshDatabase, progress: () => undefined };
});

test("a record moved to PostgreSQL reads as before, verifies, and can be continued", async () => {
  const { seen, broken } = await migration({ runs: 450 }, { ...tools, engine: "postgres" });
  expect(broken).toEqual([]);
  expect(seen).toMatchObject({ runs: 450, executions: 450, files: 45, "seen otherwise after it": 0 });
});

for (const engine of ["sqlite", "postgres"] as const) {
  test(`a backup of ${engine} made while runs are active is complete on both engines`, async () => {
    const { seen, broken } = await backups({ seconds: 4, perSecond: 10, backups: 2 }, { ...tools, engine });
    expect(broken).toEqual([]);
    expect(seen).toMatchObject({ backups: 2, "with events missing": 0, "chains that do not verify": 0 });
    expect(seen["runs in them"]).toBeGreaterThan(0);
  });
}
