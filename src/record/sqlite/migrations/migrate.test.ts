import { expect, it } from "vitest";
import { scratchStores } from "../../../../test/fixtures/record/scratch.ts";
import { migrate } from "./migrate.ts";
import { schemaVersion } from "./version.ts";

const scratch = scratchStores();

it("refuses a database that a newer version of Drover migrates before the lock is taken, and does not change it", async () => {
  const { connection } = await scratch.open(scratch.newDirectory());
  // The newer version is found under the lock, after an older version was read before.
  connection.exec(`pragma user_version = ${schemaVersion + 1}`);
  await expect(migrate(connection, 0)).rejects.toThrow(expect.objectContaining({ code: "DROVER-STA-005" }));
  expect(connection.sql("pragma user_version").get()).toEqual({ user_version: schemaVersion + 1 });
  connection.exec("begin immediate; rollback");
});
