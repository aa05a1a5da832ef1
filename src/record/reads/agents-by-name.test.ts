import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { drive } from "../../../test/fixtures/dispatch/drive.ts";
import { sampleAgent } from "../../../test/fixtures/dispatch/host.ts";
import { scratchStores } from "../../../test/fixtures/record/scratch.ts";
import { undoIndexes } from "../../../test/fixtures/record/undo-indexes.ts";
import { type FreshDatabase, freshDatabase } from "../../../test/postgres/fresh-database.ts";
import { connect } from "../postgres/connection.ts";
import { translateStatement } from "../postgres/dialect.ts";
import { schemaVersion } from "../postgres/migrations/migrate.ts";
import { openPostgresStore } from "../postgres/open.ts";
import type { Query } from "../query.ts";
import { openDatabase } from "../sqlite/driver.ts";
import { databaseFile } from "../../model/state-layout.ts";
import { readAgents } from "./agents.ts";
import { schemaVersion as sqliteVersion } from "../sqlite/migrations/version.ts";

/** Returns the queries that read the agents of this name. */
function collectQueries(name: string): Query[] {
  const work = readAgents(name);
  const queries: Query[] = [];
  for (let step = work.next(); !step.done; step = work.next([])) queries.push(step.value);
  return queries;
}

const index = "runner_agents_by_name";
const scratch = scratchStores();

describe("agents of one name, on SQLite", () => {
  it("are found by an index, however many runners there are", async () => {
    const { connection } = await scratch.open(scratch.newDirectory());
    const plans = collectQueries("x").flatMap(({ text, values }) =>
      connection.sql(`explain query plan ${text}`).all(...values),
    );
    expect(plans.map(({ detail }) => String(detail)).filter((detail) => !detail.startsWith("SEARCH"))).toEqual([]);
    expect(JSON.stringify(plans)).toContain(index);
  });

  it("are found by an index in an older record, which is migrated when it is opened", async () => {
    const directory = scratch.newDirectory();
    const store = await scratch.open(directory);
    const schema = () => store.connection.sql("select name, sql from sqlite_master order by name").all();
    const before = schema();
    await drive(store, () => new Date()).register("r", { agents: [sampleAgent({ name: "old" })] });
    store.connection.exec(`${undoIndexes.sqlite}; pragma user_version = 5`);
    const again = await scratch.open(directory);
    expect(schema()).toEqual(before);
    expect(await again.read.agents("old")).toMatchObject([{ agent: { name: "old" }, source: "runner" }]);
    const file = openDatabase(databaseFile(directory), {});
    expect(file.prepare("pragma user_version").get()).toEqual({ user_version: sqliteVersion });
    file.close();
  });
});

describe("agents of one name, on PostgreSQL", () => {
  const secret = Buffer.alloc(32, 7);
  let database: FreshDatabase;
  beforeEach(async () => {
    database = await freshDatabase();
  });
  afterEach(() => database.drop());

  /** Runs any SQL in the schema of the record. */
  async function withClient<T>(work: (client: Awaited<ReturnType<typeof connect>>) => Promise<T>): Promise<T> {
    const client = await connect(database.url);
    try {
      return await work(client);
    } finally {
      client.end();
    }
  }

  it("are found by an index, however many runners there are", async () => {
    await (await openPostgresStore({ url: database.url, secret })).close();
    const plans = await withClient(async (client) => {
      await client.exec(`
        insert into runner_agents (runner_id, name, body)
          select 'runner ' || no, 'agent ' || no, '{}' from generate_series(1, 3000) no;
        analyze runner_agents`);
      const rows = [];
      for (const { text } of collectQueries("x"))
        rows.push(...(await client.exec(`explain ${translateStatement(text).text.replaceAll("$1", "'agent 7'")}`)));
      return rows.map((row) => String(row["QUERY PLAN"])).join("\n");
    });
    expect(plans).toContain(index);
    expect(plans).not.toContain("Seq Scan on runner_agents");
  });

  it("are found by an index in an older record, which is migrated when it is opened", async () => {
    const before = await openPostgresStore({ url: database.url, secret });
    await drive(before, () => new Date()).register("r", { agents: [sampleAgent({ name: "old" })] });
    await before.close();
    const selectIndexes = `select indexname, indexdef from pg_indexes where schemaname = 'drover' order by indexname`;
    const indexes = await withClient((client) => client.exec(selectIndexes));
    expect(indexes.map((row) => row["indexname"])).toContain(index);
    await withClient((client) => client.exec(`${undoIndexes.postgres}; update schema_version set version = 1`));
    const again = await openPostgresStore({ url: database.url, secret });
    expect(await again.read.agents("old")).toMatchObject([{ agent: { name: "old" }, source: "runner" }]);
    await again.close();
    expect(await withClient((client) => client.exec(selectIndexes))).toEqual(indexes);
    expect(await withClient((client) => client.exec("select version from schema_version"))).toEqual([
      { version: schemaVersion },
    ]);
  });
});
