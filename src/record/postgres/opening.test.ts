import { expect, test } from "vitest";
import { ownDatabase, secret } from "../../../test/fixtures/record/postgres-stores.ts";
import { executionStarted, sampleId, sampleRun } from "../../../test/fixtures/record/sample.ts";
import { connect } from "./connection.ts";
import { openPostgresStore } from "./open.ts";

const at = ownDatabase();

test("creates the schema of a new database once when several open it at the same time", async () => {
  const stores = await Promise.all(Array.from({ length: 6 }, () => at.open()));
  const ids = await Promise.all(stores.map((store) => store.storeId()));
  expect(new Set(ids).size).toBe(1);
});

test("refuses a database of a newer Drover and does not change it", async () => {
  await (await at.open()).close();
  const client = await connect(at.url);
  at.afterwards(() => client.end());
  await client.exec("update schema_version set version = 99");
  await expect(openPostgresStore({ url: at.url, secret })).rejects.toMatchObject({ code: "DROVER-STA-005" });
  expect(await client.exec("select version from schema_version")).toEqual([{ version: 99 }]);
});

test("refuses a database whose encoding cannot store every text", async () => {
  const name = `${new URL(at.url).pathname.slice(1)}_ascii`;
  const admin = await connect(at.url);
  at.afterwards(() => admin.end());
  await admin.exec(`create database ${name} encoding 'SQL_ASCII' locale 'C' template template0`);
  at.afterwards(() => admin.exec(`drop database ${name} with (force)`));
  const url = at.url.replace(/[^/]+$/, name);
  await expect(openPostgresStore({ url, secret })).rejects.toMatchObject({
    code: "DROVER-STA-006",
    message: expect.stringContaining("SQL_ASCII"),
  });
});

test.each([
  ["a server that does not exist", "postgres://u:secret-word@127.0.0.1:1/none", "DROVER-STA-008"],
  ["a database that does not exist", null, "DROVER-STA-006"],
])("%s is reported by name, without the password", async (_what, url, code) => {
  const asked = url ?? at.url.replace(/[^/]+$/, "no_such_database");
  const fault: unknown = await openPostgresStore({ url: asked, secret }).catch((thrown: unknown) => thrown);
  expect(fault).toMatchObject({ code, field: "DATABASE_URL" });
  expect(String(fault)).not.toContain(new URL(asked).password);
});

test("refuses a secret that does not match the chain, before anything is sealed with it", async () => {
  const store = await at.open();
  const run = sampleRun({ run_id: sampleId() });
  const events = [{ n: 1, at: run.created_at, event: executionStarted(sampleId()) }];
  await store.apply([{ op: "create_run", run, events }]);
  await expect(openPostgresStore({ url: at.url, secret: Buffer.alloc(32, 8) })).rejects.toMatchObject({
    code: expect.stringMatching(/^DROVER-/),
    message: expect.stringContaining("secret"),
  });
  await (await at.open()).storeId();
});

test("keeps working when a newer Drover adds a column", async () => {
  const store = await at.open();
  expect(await store.read.token("none")).toBeNull();
  const newer = await connect(at.url);
  at.afterwards(() => newer.end());
  await newer.exec("alter table tokens add column added text; alter table runners add column added text");
  for (let times = 0; times < 4; times += 1) expect(await store.read.token("none")).toBeNull();
});
