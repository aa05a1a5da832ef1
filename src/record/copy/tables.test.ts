import { expect, it } from "vitest";
import { scratchStores } from "../../../test/fixtures/record/scratch.ts";
import { freshDatabase } from "../../../test/postgres/fresh-database.ts";
import { connect } from "../postgres/connection.ts";
import { migrate } from "../postgres/migrations/migrate.ts";
import { tables } from "./tables.ts";

const scratch = scratchStores();
const known = Object.fromEntries(tables.map(({ name, columns }) => [name, [...columns].sort()]));

it("lists every table and column of SQLite, with their keys", async () => {
  const { connection } = await scratch.open(scratch.newDirectory());
  const names = connection.sql("select name from sqlite_master where type = 'table'").all();
  const found = names.map(({ name }) => [
    name,
    connection.sql(`select name, pk from pragma_table_info('${String(name)}') order by name`).all(),
  ]);
  const { store, ...rest } = Object.fromEntries(found) as Record<string, { name: string; pk: number }[]>;
  expect(store).toMatchObject([
    { name: "indexed_to" },
    { name: "judged_at" },
    { name: "restored_at" },
    { name: "store_id" },
  ]);
  expect(
    Object.fromEntries(Object.entries(rest).map(([name, columns]) => [name, columns.map((column) => column.name)])),
  ).toEqual(known);
  for (const { name, key } of tables) {
    const primary = rest[name]?.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
    expect([name, primary?.map((column) => column.name)]).toEqual([name, key]);
  }
});

it("lists every table and column of PostgreSQL, with its sequences", async () => {
  const database = await freshDatabase();
  try {
    await migrate(database.url);
    const client = await connect(database.url);
    const rows = await client.exec(
      "select table_name, column_name, is_identity from information_schema.columns where table_schema = 'drover' order by column_name",
    );
    client.end();
    const found: Record<string, string[]> = {};
    for (const row of rows) (found[String(row["table_name"])] ??= []).push(String(row["column_name"]));
    const { store, schema_version: _, turns, blobs, blob_parts, run_search, ...rest } = found;
    expect(store).toEqual(["commits", "indexed_to", "judged_at", "restored_at", "store_id"]);
    expect(run_search).toEqual(["run_no", "seq", "words"]);
    expect(turns).toEqual(["mark", "no", "slot"]);
    expect([blobs, blob_parts]).toEqual([
      ["sha256", "size", "stored_at", "upload_id"],
      ["bytes", "part", "stored_at", "upload_id"],
    ]);
    expect(rest).toEqual(known);
    const counted = rows.filter((row) => row["is_identity"] === "YES");
    expect(counted.map((row) => `${String(row["table_name"])}.${String(row["column_name"])}`).sort()).toEqual(
      tables.flatMap(({ name, sequenceColumn: column }) => (column === undefined ? [] : [`${name}.${column}`])).sort(),
    );
  } finally {
    await database.drop();
  }
});
