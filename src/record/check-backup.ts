import { closeSync, fstatSync, openSync, readSync, statSync } from "node:fs";
import type { Connection } from "./sqlite/connection.ts";
import { tables } from "./copy/tables.ts";

const magic = "SQLite format 3\0";
const headerBytes = 100;

/** Why the bytes of a file cannot be those that a backup was written as; null where they can. Reads its header only. */
export function wrongBytes(file: string): string | null {
  // before it is opened: opening a pipe waits for its other end
  if (!statSync(file).isFile()) return "it is not a regular file";
  const fd = openSync(file, "r");
  try {
    const header = Buffer.alloc(headerBytes);
    const read = readSync(fd, header, 0, headerBytes, 0);
    if (read < headerBytes || header.toString("latin1", 0, magic.length) !== magic) return "it is not a database";
    const stored = header.readUInt16BE(16);
    const pageSize = stored === 1 ? 65_536 : stored;
    // SQLite goes by the size of the file instead where a writer did not keep this number
    if (header.readUInt32BE(24) !== header.readUInt32BE(92)) return "its header was changed by another program";
    const expected = header.readUInt32BE(28) * pageSize;
    const { size } = fstatSync(fd);
    if (size > expected) return `${size - expected} bytes were appended to it`;
    return size < expected ? `its last ${expected - size} bytes are missing` : null;
  } finally {
    closeSync(fd);
  }
}

/** Tables of a backup that are not copied from one record to another row by row. */
const otherTables = ["store", "backup_extras", "backup_files", "run_search"];
/** What SQLite makes by itself for a full-text index. */
const searchTables = /^run_search_(?:data|idx|content|docsize|config)$/;

/** Why what is in it cannot be what Drover has written; null where it can. A trigger would change the record once it is used. */
export function foreignContents(backup: Connection): string | null {
  const known = new Set([...tables.map(({ name }) => name), ...otherTables]);
  for (const row of backup.sql("select type, name from sqlite_master order by rowid").all()) {
    const [type, name] = [String(row["type"]), String(row["name"])];
    if (type === "index" || (type === "table" && (known.has(name) || searchTables.test(name)))) continue;
    if (!name.startsWith("sqlite_")) return `it has the ${type} ${name}, which no Drover makes`;
  }
  const damage = String(backup.sql("pragma quick_check(1)").get()?.["quick_check"]);
  return damage === "ok" ? null : `it is damaged (${damage})`;
}
