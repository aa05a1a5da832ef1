import { expect } from "vitest";
import { schema } from "../../src/record/postgres/connection.ts";
import { openPostgresStore } from "../../src/record/postgres/open.ts";
import { execute } from "./databases.ts";
import { type FreshDatabase, freshDatabase } from "./fresh-database.ts";

/** By test file, because other files run in this process too, and query plans depend on a database's history. */
const spare = new Map<string, string[]>();

/**
 * A database with a newly created record. It is reset for the next test of the same file, because creating another takes a
 * hundred times as long. Not for tests that change tables themselves.
 */
export async function emptyRecord(secret: Buffer): Promise<FreshDatabase> {
  const key = expect.getState().testPath ?? "";
  const unused = spare.get(key) ?? [];
  spare.set(key, unused);
  const url = unused.pop() ?? (await createRecord(secret));
  let dropped = false;
  return {
    url,
    async drop() {
      if (dropped) return;
      dropped = true;
      await execute(url, resetTables);
      unused.push(url);
    },
  };
}

async function createRecord(secret: Buffer): Promise<string> {
  const { url } = await freshDatabase();
  await (await openPostgresStore({ url, secret })).close();
  await execute(url, saveTables);
  return url;
}

const eachTable = `select tablename as name from pg_tables where schemaname = '${schema}'`;
const eachSequence = `select sequencename as name, last_value as at from pg_sequences where schemaname = '${schema}'`;

/** Saves what the migrations created. */
const saveTables = `
  create schema as_made;
  create table as_made.sequences as ${eachSequence};
  do $$ declare t record; begin
    for t in ${eachTable} loop
      execute format('create table as_made.%1$I as table ${schema}.%1$I', t.name);
    end loop;
  end $$`;

const resetTables = `
  select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid();
  set session_replication_role = replica;
  do $$ declare t record; begin
    for t in ${eachTable} loop
      execute format('delete from ${schema}.%1$I', t.name);
      execute format('insert into ${schema}.%1$I select * from as_made.%1$I', t.name);
    end loop;
    for t in select name, at from as_made.sequences loop
      execute format('select setval(%L, %s, %L)', '${schema}.' || t.name, coalesce(t.at, 1), t.at is not null);
    end loop;
  end $$`;
