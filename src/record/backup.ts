import { chmodSync } from "node:fs";
import { readKey } from "./audit/key.ts";
import { addExtras, writeBackup } from "./backup-file.ts";
import { backUpBlobs } from "./blobs/backup-blobs.ts";
import { connect } from "./sqlite/connection.ts";
import { copyDatabase } from "./sqlite/driver.ts";
import { openConnection } from "./sqlite/open-connection.ts";
import { databaseFile } from "../model/state-layout.ts";

/** Where a record is kept: in a state directory, or in PostgreSQL with what seals its chain. */
export type RecordPlace = { directory: string } | { url: string; secret: Uint8Array };

/**
 * One file with everything a record needs to go on: its rows as of one moment, the contents of the files of its runs,
 * the key of the audit chain and the head it had then. Others may write meanwhile. Whoever can read it can also
 * continue the chain, so only its owner may. Logs and the token file are not in it.
 */
export async function backupRecord(place: RecordPlace, file: string, now: Date): Promise<{ head: string }> {
  if ("directory" in place) return backupStore({ ...place, file }, now);
  const { backupPostgres } = await import("./copy/backup-postgres.ts");
  return backupPostgres(place, file, now);
}

export interface BackupOptions {
  directory: string;
  file: string;
  lockWaitMs?: number;
  /** Nobody wants it any more. Where it is copied in one go, that is heard after it. */
  signal?: AbortSignal;
}

export async function backupStore(
  { directory, file, lockWaitMs = 5000, signal }: BackupOptions,
  now: Date,
): Promise<{ head: string }> {
  const source = databaseFile(directory);
  return writeBackup(file, async (part) => {
    // says what is wrong with a database that is missing, damaged or newer, before a copy is begun
    (await openConnection(source, "read", lockWaitMs)).close();
    // on another thread: a coordinator goes on serving meanwhile
    await copyDatabase(source, part);
    signal?.throwIfAborted();
    chmodSync(part, 0o600);
    const copy = connect(part, "write");
    try {
      // synced as a whole in the end
      copy.exec("pragma journal_mode = delete; pragma synchronous = off");
      const head = addExtras(copy, readKey(directory), now);
      await backUpBlobs(directory, copy, signal);
      return { head };
    } finally {
      copy.close();
    }
  });
}
