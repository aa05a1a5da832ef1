import type { StoredFile } from "../../model/file.ts";
import { all, first, type Row, type Work } from "../query.ts";
import { fromColumn, toColumn } from "../text.ts";

const ofLastAttempt = `
  select path, size, sha256, media_type from runs join files on files.run_no = runs.run_no and files.attempt = runs.attempt
  where run_id = ?`;
const selectFiles = `${ofLastAttempt} order by path limit 10000`;
const selectFile = `${ofLastAttempt} and path = ?`;

export function* readFiles(run_id: string): Work<StoredFile[]> {
  return (yield all(selectFiles, toColumn(run_id))).map(toStoredFile);
}

export function* readFile(run_id: string, path: string): Work<StoredFile | null> {
  const [row] = yield first(selectFile, toColumn(run_id), toColumn(path));
  return row === undefined ? null : toStoredFile(row);
}

function toStoredFile(row: Row): StoredFile {
  return {
    path: fromColumn(String(row["path"])),
    size: Number(row["size"]),
    sha256: String(row["sha256"]),
    media_type: String(row["media_type"]),
  };
}
