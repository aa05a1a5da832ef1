import { chmodSync } from "node:fs";
import { readKey } from "./audit/key.ts";
import { addExtras, writeBackup } from "./backup-file.ts";
import { backUpBlobs } from "./blobs/backup-blobs.ts";
import { connect } from "./sqlite/connection.ts";
import { copyDatabase } from "./sqlite/driver.ts";
import { openConnection } from "./sqlite/open-connection.ts";
import { databaseFile } from "../model/state-layout.ts";

/** Where a record is stored: in a state directory, or in PostgreSQL together with the secret that seals its audit chain. */
export type RecordLocation = { directory: string } | { url: string; secret: Uint8Array };

/**
 * Writes one file with everything a record needs: a consistent snapshot of its rows, the contents of its runs' files,
 * the key of the audit chain and the chain's head. Other processes may write at the same time. Only the owner may read
 * the file, because the key in it can extend the chain. Logs and the token file are not included.
 */
export async function backupRecord(location: RecordLocation, file: string, now: Date): Promise<{ head: string }> {
  if ("directory" in location) return backupStore({ ...location, file }, now);
  const { backupPostgres } = await import("./copy/backup-postgres.ts");
  return backupPostgres(location, file, now);
}

export interface BackupOptions {
  directory: string;
  file: string;
  lockWaitMs?: number;
  /** Aborts the backup. SQLite copies the database in one step and checks the signal afterwards. */
  signal?: AbortSignal;
}

export async function backupStore(
  { directory, file, lockWaitMs = 5000, signal }: BackupOptions,
  now: Date,
): Promise<{ head: string }> {
  const source = databaseFile(directory);
  return writeBackup(file, async (part) => {
    // Reports a missing, damaged or newer database before copying anything.
    (await openConnection(source, "read", lockWaitMs)).close();
    // Runs on another thread, so a coordinator keeps serving.
    await copyDatabase(source, part);
    signal?.throwIfAborted();
    chmodSync(part, 0o600);
    const copy = connect(part, "write");
    try {
      // writeBackup syncs the whole file at the end.
      copy.exec("pragma journal_mode = delete; pragma synchronous = off");
      const head = addExtras(copy, readKey(directory), now);
      await backUpBlobs(directory, copy, signal);
      return { head };
    } finally {
      copy.close();
    }
  });
}
