import { expect, test } from "vitest";
import { ownDatabase, secret } from "../../../test/fixtures/record/postgres-stores.ts";
import { executionStarted, sampleId, sampleRun } from "../../../test/fixtures/record/sample.ts";
import { connect } from "./connection.ts";
import { openPostgresStore } from "./open.ts";

const database = ownDatabase();

test("creates the schema of a new database once when several open it at the same time", async () => {
  const stores = await Promise.all(Array.from({ length: 6 }, () => database.open()));
  const ids = await Promise.all(stores.map((store) => store.storeId()));
  expect(new Set(ids).size).toBe(1);
});

test("refuses a database of a newer version of Drover and does not change it", async () => {
  await (await database.open()).close();
  const client = await connect(database.url);
  database.afterwards(() => client.end());
  await client.exec("update schema_version set version = 99");
  await expect(openPostgresStore({ url: database.url, secret })).rejects.toMatchObject({ code: "DROVER-STA-005" });
  expect(await client.exec("select version from schema_version")).toEqual([{ version: 99 }]);
});

test("refuses a database whose encoding cannot store all text", async () => {
  const name = `${new URL(database.url).pathname.slice(1)}_ascii`;
  const admin = await connect(database.url);
  database.afterwards(() => admin.end());
  await admin.exec(`create database ${name} encoding 'SQL_ASCII' locale 'C' template template0`);
  database.afterwards(() => admin.exec(`drop database ${name} with (force)`));
  const url = database.url.replace(/[^/]+$/, name);
  await expect(openPostgresStore({ url, secret })).rejects.toMatchObject({
    code: "DROVER-STA-006",
    message: expect.stringContaining("SQL_ASCII"),
  });
});

test.each([
  ["a server that does not exist", "postgres://u:secret-word@127.0.0.1:1/none", "DROVER-STA-008"],
  ["a database that does not exist", null, "DROVER-STA-006"],
])("reports %s by its name, without the password", async (_what, url, code) => {
  const databaseUrl = url ?? database.url.replace(/[^/]+$/, "no_such_database");
  const fault: unknown = await openPostgresStore({ url: databaseUrl, secret }).catch((thrown: unknown) => thrown);
  expect(fault).toMatchObject({ code, field: "DATABASE_URL" });
  expect(String(fault)).not.toContain(new URL(databaseUrl).password);
});

test("refuses a secret that does not match the chain, before anything is sealed with it", async () => {
  const store = await database.open();
  const run = sampleRun({ run_id: sampleId() });
  const events = [{ n: 1, at: run.created_at, event: executionStarted(sampleId()) }];
  await store.apply([{ op: "create_run", run, events }]);
  await expect(openPostgresStore({ url: database.url, secret: Buffer.alloc(32, 8) })).rejects.toMatchObject({
    code: expect.stringMatching(/^DROVER-/),
    message: expect.stringContaining("secret"),
  });
  await (await database.open()).storeId();
});

test("keeps working when a newer version of Drover adds a column", async () => {
  const store = await database.open();
  expect(await store.read.token("none")).toBeNull();
  const newer = await connect(database.url);
  database.afterwards(() => newer.end());
  await newer.exec("alter table tokens add column added text; alter table runners add column added text");
  for (let times = 0; times < 4; times += 1) expect(await store.read.token("none")).toBeNull();
});
