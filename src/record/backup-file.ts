import { randomBytes } from "node:crypto";
import { closeSync, existsSync, linkSync, openSync, renameSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { RequestError } from "../model/errors.ts";
import { readChainEnd } from "./audit/chain.ts";
import { formatHead } from "./audit/head.ts";
import type { VerifyResult } from "./audit/verify.ts";
import { createExtras, checkDatabase, checkHeader } from "./check-backup.ts";
import { isErrno } from "./errno.ts";
import { runWork } from "./sqlite/run-work.ts";
import { connect, type Connection } from "./sqlite/connection.ts";
import { toHostError } from "./sqlite/errors.ts";
import { schemaVersion } from "./sqlite/migrations/version.ts";

/**
 * A backup is one SQLite database, whichever engine the record used. It holds the tables of the record, the contents
 * of its files (see ./blobs/backup-blobs.ts) and these extras.
 */
export interface BackupExtras {
  /** Schema version of the database in the backup. */
  version: number;
  /** null if the record has never sealed an audit row. */
  audit_key: Uint8Array | null;
  /** Head of the audit chain at the time of the backup. */
  audit_head: string;
  made_at: string;
}

/** Result of a restore. */
export interface RestoreResult {
  made_at: string;
  audit: VerifyResult;
  /** Number of valid tokens that the restore revoked. null with `keepTokens`. */
  revoked_tokens: number | null;
}

export interface RestoreOptions {
  now: Date;
  /** Keeps the tokens of the backup valid instead of revoking them. */
  keepTokens?: boolean;
  /**
   * Where a restore into PostgreSQL puts a temporary copy of an older backup. The copy contains the key, so commands must
   * not see it. Defaults to the directory of the backup.
   */
  copyDirectory?: string;
  /** Called after verification, before the record gets its final name. */
  beforePublish?: () => void;
}

/**
 * Writes a backup that is either complete and durable under its name or absent, and never overwrites a file. `fill` writes
 * into a file that only its owner can read.
 */
export async function writeBackup<T>(file: string, fill: (partialFile: string) => Promise<T>): Promise<T> {
  if (existsSync(file)) throw createExistsError(file);
  const partialFile = getPartialName(file);
  // Create the file here: SQLite would create it with whatever mode the umask allows.
  createExclusive(partialFile, file);
  try {
    const result = await fill(partialFile);
    await flush(partialFile);
    linkIntoPlace(partialFile, file);
    await flush(dirname(file));
    return result;
  } catch (error) {
    removePartial(file);
    throw toHostError(error, file);
  }
}

/** Asynchronous, so that a coordinator keeps serving while a large file is synced. */
async function flush(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** Removes an unfinished backup of this process. It may contain the audit key. */
export function removePartial(file: string): void {
  for (const suffix of ["", "-journal", "-wal", "-shm"]) rmSync(getPartialName(file) + suffix, { force: true });
}

/** Distinguishes this process's partial file from that of another process that writes a backup of the same name. */
const processSuffix = randomBytes(4).toString("hex");

function getPartialName(file: string): string {
  return `${file}.${processSuffix}.part`;
}

function createExclusive(path: string, file: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (error) {
    throw isErrno(error, "EEXIST") ? createExistsError(path) : toHostError(error, file);
  }
}

/** A rename would overwrite a file created in the meantime; a hard link fails if the name exists. */
function linkIntoPlace(partialFile: string, file: string): void {
  try {
    linkSync(partialFile, file);
    rmSync(partialFile);
  } catch (error) {
    if (isErrno(error, "EEXIST")) throw createExistsError(file);
    if (!noHardLinkCodes.some((code) => isErrno(error, code))) throw error;
    // This file system has no hard links: reserve the name with an empty file, then replace it in one step.
    createExclusive(file, file);
    try {
      renameSync(partialFile, file);
    } catch (renameError) {
      rmSync(file);
      throw renameError;
    }
  }
}

/** Errors from file systems without hard links, such as FAT. */
const noHardLinkCodes = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"];

/** Returns the head of the copy's audit chain. */
export function addExtras(copy: Connection, audit_key: Uint8Array | null, now: Date): string {
  const { last_no, mac } = runWork(copy, readChainEnd());
  const head = formatHead({ count: last_no, mac: Buffer.from(mac).toString("hex") });
  copy.exec(createExtras);
  copy.sql("insert into backup_extras values (?, ?, ?)").run(audit_key, head, now.toISOString());
  return head;
}

export function dropExtras(copy: Connection): void {
  copy.exec("drop table backup_extras");
}

/** Checks a backup without writing anything. Its audit chain is verified later, in the restored copy. */
export function readExtras(file: string): BackupExtras {
  if (!existsSync(file)) throw createRestoreError(file, "it does not exist");
  let copy;
  try {
    const headerFault = checkHeader(file);
    if (headerFault !== null) throw createRestoreError(file, headerFault);
    copy = connect(file, "immutable");
    const version = Number(copy.sql("pragma user_version").get()?.["user_version"]);
    if (version > schemaVersion)
      throw createRestoreError(
        file,
        `a newer version of Drover made it (schema version ${version}; this one supports schema versions up to ${schemaVersion})`,
      );
    if (!(version >= 1))
      throw createRestoreError(file, `its schema version is ${version}, which no version of Drover has written`);
    const databaseFault = checkDatabase(copy, version);
    if (databaseFault !== null) throw createRestoreError(file, databaseFault);
    const row = copy.sql("select audit_key, audit_head, made_at from backup_extras").get();
    if (row === undefined) throw createRestoreError(file, "its backup_extras table is empty");
    // The statement selects exactly these columns, written by addExtras.
    return { ...(row as unknown as Omit<BackupExtras, "version">), version };
  } catch (error) {
    if (error instanceof RequestError) throw error;
    throw createRestoreError(file, error instanceof Error ? error.message : String(error));
  } finally {
    copy?.close();
  }
}

export function createRestoreError(file: string, reason: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `${file} cannot be restored: ${reason}.`,
    field: file,
    next: "Pass a file that drover backup has written.",
  });
}

function createExistsError(file: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `${file} already exists.`,
    field: file,
    next: "Choose another name or move the file away: a backup never overwrites a file.",
  });
}
