import { expect, it } from "vitest";
import { scratchStores } from "../../../../test/fixtures/record/scratch.ts";
import { migrate } from "./migrate.ts";
import { schemaVersion } from "./version.ts";

const scratch = scratchStores();

it("refuses a database that a newer Drover brought up to date meanwhile, and leaves it so", async () => {
  const { connection } = await scratch.open(scratch.newDirectory());
  // As it is found under the lock, by one that saw an older version before.
  connection.exec(`pragma user_version = ${schemaVersion + 1}`);
  await expect(migrate(connection, 0)).rejects.toThrow(expect.objectContaining({ code: "DROVER-STA-005" }));
  expect(connection.sql("pragma user_version").get()).toEqual({ user_version: schemaVersion + 1 });
  connection.exec("begin immediate; rollback");
});
