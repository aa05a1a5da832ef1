import { chmodSync, copyFileSync, existsSync, linkSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { RequestError } from "../model/errors.ts";
import { createHeadCheck } from "./audit/head-checks.ts";
import { readKey } from "./audit/key.ts";
import { type VerifyResult, verifyChain, createVerifyingMac } from "./audit/verify.ts";
import {
  type BackupExtras,
  dropExtras,
  createRestoreError,
  readExtras,
  type RestoreResult,
  type RestoreOptions,
} from "./backup-file.ts";
import type { RecordLocation } from "./backup.ts";
import { restoreBlobs } from "./blobs/backup-blobs.ts";
import { revokeRestoredTokens } from "./revoke-restored-tokens.ts";
import { runWork } from "./sqlite/run-work.ts";
import { connect } from "./sqlite/connection.ts";
import { openSqliteEngine } from "./sqlite/engine.ts";
import { toHostError } from "./sqlite/errors.ts";
import { migrate } from "./sqlite/migrations/migrate.ts";
import { schemaVersion } from "./sqlite/migrations/version.ts";
import { walkStatements } from "./sqlite/walk-statements.ts";
import { createRecordDirectory } from "./state-directory.ts";
import { auditHeadFile, auditKeyFile, databaseFile } from "../model/state-layout.ts";
import { sync } from "./sync.ts";

/**
 * Creates a record from a backup of either engine. It never overwrites a record, and it leaves nothing behind if the audit
 * chain of the copy does not verify. After a crash it can be repeated.
 */
export async function restoreRecord(
  location: RecordLocation,
  file: string,
  options: RestoreOptions,
): Promise<RestoreResult> {
  if ("directory" in location) return restoreStore({ ...location, file, ...options });
  const { restoreIntoPostgres } = await import("./copy/restore-postgres.ts");
  return restoreIntoPostgres(location, file, options);
}

/** Renames the database into place last: until then there is no record, whatever a killed restore left behind. */
export async function restoreStore(
  options: { directory: string; file: string } & RestoreOptions,
): Promise<RestoreResult> {
  const { directory, file } = options;
  if (existsSync(databaseFile(directory))) throw createExistsError(directory, databaseFile(directory));
  const extras = readExtras(file);
  const hasKey = existsSync(auditKeyFile(directory));
  if (hasKey && !matchesBackupKey(directory, extras)) throw createExistsError(directory, auditKeyFile(directory));
  const partialFile = `${databaseFile(directory)}.part`;
  const createdPaths: string[] = [];
  try {
    createRecordDirectory(directory);
    createdPaths.push(partialFile, `${auditKeyFile(directory)}.part`);
    removeFiles(createdPaths);
    copyFileSync(file, partialFile);
    chmodSync(partialFile, 0o600);
    const revoked_tokens = await unpack(partialFile, createdPaths, extras, options);
    const audit = await verifyPartialFile(partialFile, extras);
    // Damage that the chain itself records is part of its history, not damage to the copy.
    if (!audit.ok && !audit.first_bad?.wasReported)
      throw createRestoreError(file, `its audit chain is broken (${audit.first_bad?.what ?? "unknown"})`);
    createdPaths.push(auditHeadFile(directory));
    writeHeadAndKey(directory, extras, hasKey);
    if (!hasKey) createdPaths.push(auditKeyFile(directory));
    switchToWal(partialFile);
    sync(partialFile);
    options.beforePublish?.();
    renameSync(partialFile, databaseFile(directory));
    sync(directory);
    return { made_at: extras.made_at, audit, revoked_tokens };
  } catch (error) {
    removeFiles(createdPaths);
    throw toHostError(error, databaseFile(directory));
  }
}

function removeFiles(createdPaths: readonly string[]): void {
  for (const path of createdPaths)
    for (const suffix of ["", "-journal", "-wal", "-shm"]) rmSync(path + suffix, { force: true });
}

/** True if the key was left by a killed restore of the same record. */
function matchesBackupKey(directory: string, { audit_key }: BackupExtras): boolean {
  const key = readKey(directory);
  return key !== null && audit_key !== null && Buffer.compare(key, audit_key) === 0;
}

async function verifyPartialFile(partialFile: string, { audit_key, audit_head }: BackupExtras): Promise<VerifyResult> {
  const engine = await openSqliteEngine(partialFile, "read", 0);
  try {
    // Without a key nothing was ever sealed, so any key will do.
    const mac = createVerifyingMac(audit_key ?? new Uint8Array());
    return await verifyChain(engine, walkStatements, mac, [createHeadCheck(audit_head)]);
  } finally {
    engine.close();
  }
}

function writeHeadAndKey(directory: string, { audit_key, audit_head }: BackupExtras, hasKey: boolean): void {
  writeFileSync(auditHeadFile(directory), formatHeadFile(audit_head), { mode: 0o600 });
  sync(auditHeadFile(directory));
  if (audit_key !== null && !hasKey) writeKey(auditKeyFile(directory), Buffer.from(audit_key).toString("hex"));
}

/** Links the key into place: nobody sees a partial key, and an existing key is never replaced. */
function writeKey(file: string, key: string): void {
  const partialFile = `${file}.part`;
  rmSync(partialFile, { force: true });
  writeFileSync(partialFile, `${key}\n`, { mode: 0o600, flag: "wx" });
  sync(partialFile);
  try {
    linkSync(partialFile, file);
  } finally {
    rmSync(partialFile);
  }
}

/** Moves files and extras out of the database and migrates it if it is older. Leaves a single file. */
async function unpack(
  partialFile: string,
  createdPaths: string[],
  { version, made_at }: BackupExtras,
  { directory, now, keepTokens = false }: { directory: string } & RestoreOptions,
): Promise<number | null> {
  const copy = connect(partialFile, "write");
  try {
    dropExtras(copy);
    restoreBlobs(directory, copy, createdPaths);
    if (version < schemaVersion) await migrate(copy, 0);
    const revokedTokens = keepTokens ? null : runWork(copy, revokeRestoredTokens(made_at, now));
    copy.exec("pragma journal_mode = delete");
    return revokedTokens;
  } finally {
    copy.close();
  }
}

/** Switches to WAL like every record. The last close removes the extra files. */
function switchToWal(partialFile: string): void {
  const copy = connect(partialFile, "write");
  try {
    copy.exec("pragma journal_mode = wal");
  } finally {
    copy.close();
  }
}

/** Formats the head as audit.head stores it, with a count of fixed width. */
function formatHeadFile(head: string): string {
  const [count = "0", mac = ""] = head.split(":");
  return `${count.padStart(16, "0")}:${mac}\n`;
}

function createExistsError(directory: string, path: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `${directory} already contains a record (${path}).`,
    field: directory,
    next: "Stop its coordinator and move the directory away, or restore to another one with DROVER_STATE_DIR.",
  });
}
