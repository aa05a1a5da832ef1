import {
  appendFileSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { execFileSync } from "node:child_process";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { executionStarted, numbered, sampleId, sampleRun } from "../../test/fixtures/record/sample.ts";
import { type FreshDatabase, freshDatabase } from "../../test/postgres/fresh-database.ts";
import { backupStore } from "./backup.ts";
import { readKey } from "./audit/key.ts";
import { openStore } from "./open.ts";
import { restoreRecord, restoreStore } from "./restore.ts";
import { type Database, openDatabase } from "./sqlite/driver.ts";
import { schemaVersion } from "./sqlite/migrations/version.ts";

let root: string;
let validBackup: string;
let secret: Uint8Array;
let database: FreshDatabase;

beforeAll(async () => {
  database = await freshDatabase();
  root = mkdtempSync(join(tmpdir(), "drover-check-"));
  const directory = join(root, "state");
  const store = await openStore({ directory, now: () => new Date(), createIfMissing: true });
  const run = sampleRun();
  await store.apply([{ op: "create_run", run, events: numbered(run.run_id, 1, executionStarted(sampleId())) }]);
  await store.close();
  validBackup = join(root, "good");
  await backupStore({ directory, file: validBackup }, new Date());
  secret = readKey(directory)!;
});
afterAll(async () => {
  rmSync(root, { recursive: true, force: true });
  await database.drop();
});

const pageSize = (): number => readFileSync(validBackup).readUInt16BE(16);
const executeSql = (text: string) => (file: string) => {
  // The driver has enableDefensive, but the type Database does not declare it.
  const copy = openDatabase(file, {}) as Database & { enableDefensive(active: boolean): void };
  copy.enableDefensive(false);
  copy.exec(text);
  copy.close();
};
/** Adds an object to the schema whose name SQLite would refuse. */
const insertSchemaRow = (type: string, name: string, definition: string): string =>
  `pragma writable_schema = on;
   insert into sqlite_master (type, name, tbl_name, rootpage, sql) values ('${type}', '${name}', 'tokens', 0, '${definition}')`;
const editBytes = (edit: (bytes: Buffer) => void) => (file: string) => {
  const bytes = readFileSync(file);
  edit(bytes);
  writeFileSync(file, bytes);
};

describe.each<[string, (file: string) => void, string | RegExp]>([
  ["a line of text appended", (file) => appendFileSync(file, "junk\n"), "5 bytes were appended"],
  ["one zero byte appended", (file) => appendFileSync(file, Buffer.alloc(1)), "1 bytes were appended"],
  ["a page of zero bytes appended", (file) => appendFileSync(file, Buffer.alloc(pageSize())), "bytes were appended"],
  ["a gzip member appended", (file) => appendFileSync(file, gzipSync("junk")), "bytes were appended"],
  ["another backup appended", (file) => appendFileSync(file, readFileSync(validBackup)), "bytes were appended"],
  [
    "a page appended and counted in the header",
    (file) => {
      appendFileSync(file, Buffer.alloc(pageSize(), 7));
      editBytes((bytes) => bytes.writeUInt32BE(bytes.length / pageSize(), 28))(file);
    },
    "damaged",
  ],
  [
    "its last byte cut off",
    (file) => truncateSync(file, readFileSync(validBackup).length - 1),
    "last 1 bytes are missing",
  ],
  [
    "its last page cut off",
    (file) => truncateSync(file, readFileSync(validBackup).length - pageSize()),
    "bytes are missing",
  ],
  [
    "its last page cut off and the header adjusted",
    (file) => {
      truncateSync(file, readFileSync(validBackup).length - pageSize());
      editBytes((bytes) => bytes.writeUInt32BE(bytes.length / pageSize(), 28))(file);
    },
    /damaged|malformed/,
  ],
  ["half of it zeroed", (file) => editBytes((bytes) => bytes.fill(0, bytes.length / 2))(file), /damaged|malformed/],
  ["only its header", (file) => truncateSync(file, 100), "bytes are missing"],
  ["no contents", (file) => truncateSync(file, 0), "not a database"],
  [
    "a prefix",
    (file) => writeFileSync(file, Buffer.concat([Buffer.from("x"), readFileSync(validBackup)])),
    "not a database",
  ],
  ["gzip compression", (file) => writeFileSync(file, gzipSync(readFileSync(validBackup))), "not a database"],
  [
    "inconsistent counters in its header",
    editBytes((bytes) => bytes.writeUInt32BE(0, 92)),
    "another program changed its header",
  ],
  ["a newer version", executeSql(`pragma user_version = ${schemaVersion + 1}`), "newer version of Drover"],
  ["version 0", executeSql("pragma user_version = 0"), "schema version is 0"],
  ["a negative version", executeSql("pragma user_version = -3"), "schema version is -3"],
  [
    "a trigger",
    executeSql("create trigger t after update on tokens begin update tokens set revoked_at = null; end"),
    "trigger t",
  ],
  [
    "a view instead of a table",
    executeSql("alter table hooks rename to h; create view hooks as select * from h"),
    "which Drover did not create",
  ],
  [
    "a trigger whose name is SQLite's own",
    executeSql(
      insertSchemaRow(
        "trigger",
        "sqlite_keep",
        "create trigger sqlite_keep after update of revoked_at on tokens begin update tokens set revoked_at = null; end",
      ),
    ),
    "trigger sqlite_keep",
  ],
  [
    "a view whose name is SQLite's own",
    executeSql(insertSchemaRow("view", "sqlite_v", "create view sqlite_v as select 1")),
    /view sqlite_v|malformed/,
  ],
  ["an additional index", executeSql("create unique index once on runs (agent_name)"), "index once"],
  [
    "a changed table",
    executeSql(
      "pragma writable_schema = on; update sqlite_master set sql = replace(sql, 'not null', '') where name = 'tokens'",
    ),
    "table tokens",
  ],
  ["an index missing", executeSql("drop index audit_rows_by_run"), "lacks the index audit_rows_by_run"],
  ["an additional table", executeSql("create table notes (x)"), "table notes"],
  [
    "a table that looks like part of the search index",
    executeSql("create table run_search_x (x)"),
    "table run_search_x",
  ],
  ["no head", executeSql("delete from backup_extras"), "backup_extras table is empty"],
])("a backup with %s", (_, damage, why) => {
  it("is refused before anything is written, for either engine", async () => {
    const file = join(root, "damaged");
    copyFileSync(validBackup, file);
    damage(file);
    const directory = join(root, "new");
    await expect(restoreStore({ now: new Date(), directory, file })).rejects.toThrow(why);
    expect(existsSync(directory)).toBe(false);
    await expect(restoreRecord({ url: database.url, secret }, file, { now: new Date() })).rejects.toThrow(why);
  });
});

it("refuses a pipe and a directory without waiting for them, and follows a link", async () => {
  const directory = join(root, "new");
  execFileSync("mkfifo", [join(root, "pipe")]);
  mkdirSync(join(root, "directory"));
  for (const name of ["pipe", "directory"])
    await expect(restoreStore({ now: new Date(), directory, file: join(root, name) })).rejects.toThrow(
      "not a regular file",
    );
  expect(existsSync(directory)).toBe(false);
  symlinkSync(validBackup, join(root, "link"));
  await expect(restoreStore({ now: new Date(), directory, file: join(root, "link") })).resolves.toMatchObject({
    audit: { ok: true },
  });
});
