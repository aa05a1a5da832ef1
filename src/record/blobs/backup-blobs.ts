import { createHash } from "node:crypto";
import { closeSync, mkdirSync, openSync, renameSync, writeFileSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { BugError, RequestError } from "../../model/errors.ts";
import { isSha256 } from "../../model/file.ts";
import { isErrno } from "../errno.ts";
import type { Connection } from "../sqlite/connection.ts";
import { sync } from "../sync.ts";
import { blobFile } from "./blobs.ts";

const pieceBytes = 1024 * 1024;

export const createFiles = `
  create table backup_files (sha256 text not null, piece integer not null, bytes blob not null, primary key (sha256, piece))`;
/** Includes uploads of open runs that no file refers to yet. */
const selectReferenced = `select sha256 from files union select sha256 from uploads`;
export const insertPiece = `insert into backup_files values (?, ?, ?)`;
const deleteFile = `delete from files where sha256 = ?`;
const deleteUpload = `delete from uploads where sha256 = ?`;
const selectTable = `select 1 from sqlite_master where name = 'backup_files'`;
const selectHashes = `select distinct sha256 from backup_files`;
const selectPieces = `select bytes from backup_files where sha256 = ? order by piece`;

export function createBackupFiles(copy: Connection): void {
  copy.exec(createFiles);
}

/** Copies the contents of all files into rows of the backup, piece by piece, so that the event loop is not blocked. */
export async function backUpBlobs(directory: string, copy: Connection, signal?: AbortSignal): Promise<void> {
  createBackupFiles(copy);
  copy.exec("begin");
  for (const row of copy.sql(selectReferenced).all()) {
    signal?.throwIfAborted();
    const sha256 = String(row["sha256"]);
    // Retention has removed the content since the snapshot, so remove it from the copy too.
    if (!(await backUpBlob(directory, sha256, copy)))
      for (const statement of [deleteFile, deleteUpload]) copy.sql(statement).run(sha256);
  }
  copy.exec("commit");
}

async function backUpBlob(directory: string, sha256: string, copy: Connection): Promise<boolean> {
  let handle;
  try {
    handle = await open(blobFile(directory, sha256), "r");
  } catch (error) {
    if (isErrno(error, "ENOENT") || isErrno(error, "ENOTDIR")) return false;
    throw error;
  }
  try {
    const buffer = new Uint8Array(pieceBytes);
    for (let piece = 0; ; piece += 1) {
      const { bytesRead } = await handle.read(buffer, 0, pieceBytes);
      // Empty content is one empty piece.
      if (bytesRead > 0 || piece === 0) copy.sql(insertPiece).run(sha256, piece, buffer.subarray(0, bytesRead));
      if (bytesRead === 0) return true;
    }
  } finally {
    await handle.close();
  }
}

/** Writes the contents back into files. Each path is added to `createdPaths` before its file is created. */
export function restoreBlobs(directory: string, copy: Connection, createdPaths: string[]): void {
  if (copy.sql(selectTable).get() === undefined) return;
  for (const row of copy.sql(selectHashes).all()) restoreBlob(directory, String(row["sha256"]), copy, createdPaths);
  copy.exec("drop table backup_files");
  copy.exec("vacuum");
}

function restoreBlob(directory: string, sha256: string, copy: Connection, createdPaths: string[]): void {
  if (!isSha256(sha256)) throw createChangedBlobError(sha256);
  const target = blobFile(directory, sha256);
  const partialFile = `${target}.part`;
  mkdirSync(dirname(target), { recursive: true, mode: 0o700 });
  createdPaths.push(partialFile, target);
  const hash = createHash("sha256");
  const fd = openSync(partialFile, "w", 0o600);
  try {
    for (const { bytes } of copy.sql(selectPieces).iterate(sha256)) {
      if (!(bytes instanceof Uint8Array)) throw new BugError("a blob column is not a blob");
      hash.update(bytes);
      writeFileSync(fd, bytes);
    }
  } finally {
    closeSync(fd);
  }
  if (hash.digest("hex") !== sha256) throw createChangedBlobError(sha256);
  sync(partialFile);
  renameSync(partialFile, target);
  sync(dirname(target));
}

function createChangedBlobError(sha256: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `The backup cannot be restored: its copy of the file with the SHA-256 ${sha256.slice(0, 64)} was changed.`,
    next: "Pass a file that drover backup has written.",
  });
}
