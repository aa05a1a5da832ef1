import { readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { isSha256 } from "../../model/file.ts";
import { isErrno } from "../errno.ts";
import type { SqliteStore } from "../open.ts";
import type { Connection } from "../sqlite/connection.ts";
import { hostFault } from "../sqlite/faults.ts";
import { patiently } from "../sqlite/patience.ts";
import { underWriteLock } from "../write-lock.ts";
import { blobFile, blobsFolder, unfinished } from "./blobs.ts";

/** Contents are stored before anything refers to them: whatever is this young may yet be about to get a name. */
const settledMs = 60 * 60 * 1000;
const atOnce = 1000;

const deleteUploads = `
  delete from uploads where (run_no, attempt, sha256) in (
    select uploads.run_no, uploads.attempt, sha256 from uploads left join runs using (run_no)
    where runs.run_no is null or runs.status in ('completed', 'failed', 'cancelled') limit ?)`;
const isUsed = `
  select exists (select 1 from files where sha256 = ?1) or exists (select 1 from uploads where sha256 = ?1) as used`;

/** Removes contents that no run has (or is about to have) as a file, and what a crash left half written. */
export async function pruneBlobs(store: SqliteStore, now: Date): Promise<{ blobs: number }> {
  const { connection, lockWaitMs, directory } = store;
  const folder = blobsFolder(directory);
  const names = list(folder);
  if (names.length === 0) return { blobs: 0 };
  await forgetUploads(connection, lockWaitMs);
  const before = now.getTime() - settledMs;
  for (const name of names.filter((one) => unfinished.test(one))) removeIfOld(join(folder, name), before);
  let blobs = 0;
  for (const name of names.filter((one) => /^[0-9a-f]{2}$/.test(one))) {
    for (const sha256 of list(join(folder, name)).filter(isSha256)) {
      // Looked up and removed in one go: a put of this process cannot come between.
      const removed = await patiently(
        () => removeUnused(connection, directory, sha256, before),
        connection.file,
        lockWaitMs,
      );
      if (removed) blobs += 1;
    }
  }
  return { blobs };
}

async function forgetUploads(connection: Connection, waitMs: number): Promise<void> {
  for (;;) {
    const changes = await underWriteLock(connection, waitMs, () => connection.sql(deleteUploads).run(atOnce).changes);
    if (Number(changes) < atOnce) return;
  }
}

function removeUnused(connection: Connection, directory: string, sha256: string, before: number): boolean {
  if (connection.sql(isUsed).get(sha256)?.["used"] === 1) return false;
  return removeIfOld(blobFile(directory, sha256), before);
}

function removeIfOld(file: string, before: number): boolean {
  try {
    if (statSync(file).mtimeMs >= before) return false;
    rmSync(file);
    return true;
  } catch (fault) {
    // another process swept it
    if (isErrno(fault, "ENOENT")) return false;
    throw hostFault(fault, file);
  }
}

function list(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (fault) {
    if (isErrno(fault, "ENOENT")) return [];
    throw hostFault(fault, folder);
  }
}
