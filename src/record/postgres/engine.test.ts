import { expect, it } from "vitest";
import { freshDatabase } from "../../../test/postgres/fresh-database.ts";
import { all, type Row, type Work } from "../query.ts";
import { openPostgresEngine } from "./engine.ts";
import { migrate } from "./migrations/migrate.ts";

it("lets the server abort a stalled snapshot, because it would keep deleted rows from being vacuumed", async () => {
  const database = await freshDatabase();
  await migrate(database.url);
  const engine = openPostgresEngine(database.url, 5000);
  try {
    const [row] = await engine.snapshot(function* (): Work<Row[]> {
      return yield all("select setting from pg_settings where name = 'idle_in_transaction_session_timeout'");
    });
    expect(row).toEqual({ setting: "60000" });
  } finally {
    engine.close();
    await database.drop();
  }
});
