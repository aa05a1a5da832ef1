import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import type { Connection } from "./sqlite/connection.ts";
import { createFiles } from "./blobs/backup-blobs.ts";
import type { Row } from "./query.ts";
import { openDatabase } from "./sqlite/driver.ts";
import { migrations } from "./sqlite/migrations/migrate.ts";
import { searchStatements } from "./sqlite/search-statements.ts";

const magic = "SQLite format 3\0";
const headerBytes = 100;

/** Returns why a file cannot be an intact SQLite database, or null. Reads only the file's header. */
export function checkHeader(file: string): string | null {
  // Check before opening: opening a pipe blocks until its other end is open.
  if (!statSync(file).isFile()) return "it is not a regular file";
  const fd = openSync(file, "r");
  try {
    const header = Buffer.alloc(headerBytes);
    const bytesRead = readSync(fd, header, 0, headerBytes, 0);
    if (bytesRead < headerBytes || header.toString("latin1", 0, magic.length) !== magic) return "it is not a database";
    const storedPageSize = header.readUInt16BE(16);
    const pageSize = storedPageSize === 1 ? 65_536 : storedPageSize;
    // If these two counters differ, SQLite ignores the page count in the header and uses the file size instead.
    if (header.readUInt32BE(24) !== header.readUInt32BE(92)) return "another program changed its header";
    const expectedSize = header.readUInt32BE(28) * pageSize;
    const { size } = fstatSync(fd);
    if (size > expectedSize) return `${size - expectedSize} bytes were appended to it`;
    return size < expectedSize ? `its last ${expectedSize - size} bytes are missing` : null;
  } finally {
    closeSync(fd);
  }
}

/** A backup has this table and `backup_files` in addition to the record's tables. */
export const createExtras = `
  create table backup_extras (audit_key blob, audit_head text not null, made_at text not null)`;

/**
 * Returns which object in the database differs from what Drover creates, or null. A planted trigger or a changed table
 * would change the record later.
 */
export function checkDatabase(backup: Connection, version: number): string | null {
  const expected = createSchema(version, [createExtras, createFiles, searchStatements.create ?? ""]);
  const objects = backup.sql(selectObjects).all();
  for (const object of objects) {
    const { type, name } = object;
    if (type === "table" && sqliteTables.has(String(name))) continue;
    const definition = expected.get(toObjectKey(object));
    if (definition === undefined) return `it contains the ${String(type)} ${String(name)}, which Drover did not create`;
    if (definition !== normalizeDefinition(object))
      return `its ${String(type)} ${String(name)} differs from the one that Drover creates`;
  }
  const present = new Set(objects.map(toObjectKey));
  const missing = [...createSchema(version, [createExtras]).keys()].find((key) => !present.has(key));
  if (missing !== undefined) return `it lacks the ${missing}`;
  const damage = String(backup.sql("pragma quick_check(1)").get()?.["quick_check"]);
  return damage === "ok" ? null : `it is damaged (${damage})`;
}

const selectObjects = "select type, name, tbl_name, sql from sqlite_master order by rowid";
/** Tables that SQLite itself creates. */
const sqliteTables = new Set(["sqlite_sequence", "sqlite_stat1", "sqlite_stat4"]);

/** The objects that the migrations up to this version and these statements create, with their definitions. */
function createSchema(version: number, statements: readonly string[]): Map<string, string> {
  const database = openDatabase(":memory:", {});
  try {
    for (const text of [...migrations.slice(0, version), ...statements]) database.exec(text);
    const objects = database.prepare(selectObjects).all();
    return new Map(objects.map((object) => [toObjectKey(object), normalizeDefinition(object)]));
  } finally {
    database.close();
  }
}

function toObjectKey({ type, name }: Row): string {
  return `${String(type)} ${String(name)}`;
}

function normalizeDefinition({ tbl_name, sql }: Row): string {
  return `${String(tbl_name)} ${String(sql).replaceAll(/\s+/g, " ")}`;
}
