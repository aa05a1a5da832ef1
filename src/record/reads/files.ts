import type { StoredFile } from "../../model/file.ts";
import type { Connection } from "../sqlite/connection.ts";
import type { Row } from "../sqlite/driver.ts";
import { fromColumn, toColumn } from "../text.ts";

const ofLastAttempt = `
  select path, size, sha256, media_type from runs join files on files.run_no = runs.run_no and files.attempt = runs.attempt
  where run_id = ?`;
const all = `${ofLastAttempt} order by path limit 10000`;
const one = `${ofLastAttempt} and path = ?`;

export function readFiles(connection: Connection, run_id: string): StoredFile[] {
  return connection.sql(all).all(toColumn(run_id)).map(fileFromRow);
}

export function readFile(connection: Connection, run_id: string, path: string): StoredFile | null {
  const row = connection.sql(one).get(toColumn(run_id), toColumn(path));
  return row === undefined ? null : fileFromRow(row);
}

function fileFromRow(row: Row): StoredFile {
  return {
    path: fromColumn(String(row["path"])),
    size: Number(row["size"]),
    sha256: String(row["sha256"]),
    media_type: String(row["media_type"]),
  };
}
