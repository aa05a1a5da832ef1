import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import type { Connection } from "./sqlite/connection.ts";
import { tables } from "./copy/tables.ts";

const magic = "SQLite format 3\0";
const headerBytes = 100;

/** Returns why a file cannot be an intact SQLite database, or null. Reads only the file's header. */
export function wrongBytes(file: string): string | null {
  // Check before opening: opening a pipe blocks until its other end is open.
  if (!statSync(file).isFile()) return "it is not a regular file";
  const fd = openSync(file, "r");
  try {
    const header = Buffer.alloc(headerBytes);
    const read = readSync(fd, header, 0, headerBytes, 0);
    if (read < headerBytes || header.toString("latin1", 0, magic.length) !== magic) return "it is not a database";
    const stored = header.readUInt16BE(16);
    const pageSize = stored === 1 ? 65_536 : stored;
    // If these two counters differ, SQLite ignores the page count in the header and uses the file size instead.
    if (header.readUInt32BE(24) !== header.readUInt32BE(92)) return "another program changed its header";
    const expected = header.readUInt32BE(28) * pageSize;
    const { size } = fstatSync(fd);
    if (size > expected) return `${size - expected} bytes were appended to it`;
    return size < expected ? `its last ${expected - size} bytes are missing` : null;
  } finally {
    closeSync(fd);
  }
}

/** Tables of a backup that are not copied row by row. */
const otherTables = ["store", "backup_extras", "backup_files", "run_search"];
/** Shadow tables that SQLite creates for a full-text index. */
const searchTables = /^run_search_(?:data|idx|content|docsize|config)$/;

/** Returns which object in the database Drover did not create, or null. A planted trigger would change the record later. */
export function foreignContents(backup: Connection): string | null {
  const known = new Set([...tables.map(({ name }) => name), ...otherTables]);
  for (const row of backup.sql("select type, name from sqlite_master order by rowid").all()) {
    const [type, name] = [String(row["type"]), String(row["name"])];
    if (type === "index" || (type === "table" && (known.has(name) || searchTables.test(name)))) continue;
    if (!name.startsWith("sqlite_")) return `it contains the ${type} ${name}, which Drover does not create`;
  }
  const damage = String(backup.sql("pragma quick_check(1)").get()?.["quick_check"]);
  return damage === "ok" ? null : `it is damaged (${damage})`;
}
