import { randomBytes } from "node:crypto";
import { closeSync, existsSync, linkSync, openSync, renameSync, rmSync } from "node:fs";
import { open } from "node:fs/promises";
import { dirname } from "node:path";
import { RequestError } from "../model/errors.ts";
import { chainEnd } from "./audit/chain.ts";
import { formatHead } from "./audit/head.ts";
import type { Verified } from "./audit/verify.ts";
import { foreignContents, wrongBytes } from "./check-backup.ts";
import { isErrno } from "./errno.ts";
import { carryOut } from "./sqlite/carry-out.ts";
import { connect, type Connection } from "./sqlite/connection.ts";
import { hostFault } from "./sqlite/faults.ts";
import { schemaVersion } from "./sqlite/migrations/version.ts";

/**
 * A backup is a SQLite database, of whichever engine it was made: the tables of the record, the contents of its files
 * (see ./blobs/backup-blobs.ts), and what else the record needs to go on.
 */
export interface BackupExtras {
  /** The schema it was made with. */
  version: number;
  /** null where nothing was ever sealed. */
  audit_key: Uint8Array | null;
  /** Which the chain had then. */
  audit_head: string;
  made_at: string;
}

/** What became of one. */
export interface Restored {
  made_at: string;
  audit: Verified;
  /** Tokens of the backup that were good until now; null: they still are. */
  revoked_tokens: number | null;
}

export interface RestoreOptions {
  now: Date;
  /** The tokens of the backup stay as good as they were when it was made. */
  keepTokens?: boolean;
  /** Called when everything is verified, before there is a record. */
  beforeNamed?: () => void;
}

const extrasTable = `
  create table backup_extras (audit_key blob, audit_head text not null, made_at text not null)`;

/** Whole and durable under its name, or not there; never over another. `fill` writes a file that only its owner can read. */
export async function writeBackup<T>(file: string, fill: (part: string) => Promise<T>): Promise<T> {
  if (existsSync(file)) throw exists(file);
  const part = partOf(file);
  // Made here and not by SQLite, which would give it the mode that the umask allows.
  reserve(part, file);
  try {
    const done = await fill(part);
    await flush(part);
    giveName(part, file);
    await flush(dirname(file));
    return done;
  } catch (fault) {
    removePartial(file);
    throw hostFault(fault, file);
  }
}

/** On another thread: a large file takes its time, and a coordinator serves others meanwhile. */
async function flush(path: string): Promise<void> {
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/** What there is of one that this process writes and did not make whole: it may hold the key. */
export function removePartial(file: string): void {
  for (const end of ["", "-journal", "-wal", "-shm"]) rmSync(partOf(file) + end, { force: true });
}

/** Another process that writes one for the same name has another: neither touches the other's. */
const ownWord = randomBytes(4).toString("hex");

function partOf(file: string): string {
  return `${file}.${ownWord}.part`;
}

function reserve(path: string, file: string): void {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch (fault) {
    throw isErrno(fault, "EEXIST") ? exists(path) : hostFault(fault, file);
  }
}

/** Renaming would take it from whoever got it meanwhile; a second name is refused where there is a first. */
function giveName(part: string, file: string): void {
  try {
    linkSync(part, file);
    rmSync(part);
  } catch (fault) {
    if (isErrno(fault, "EEXIST")) throw exists(file);
    if (!noSecondNames.some((code) => isErrno(fault, code))) throw fault;
    // then it is taken first, empty, and filled in one go
    reserve(file, file);
    try {
      renameSync(part, file);
    } catch (refused) {
      rmSync(file);
      throw refused;
    }
  }
}

/** Of file systems that cannot, such as those of most memory sticks. */
const noSecondNames = ["EPERM", "ENOTSUP", "EOPNOTSUPP", "ENOSYS", "EMLINK"];

/** Returns the head that the copy's chain has. */
export function addExtras(copy: Connection, audit_key: Uint8Array | null, now: Date): string {
  const { last_no, mac } = carryOut(copy, chainEnd());
  const head = formatHead({ count: last_no, mac: Buffer.from(mac).toString("hex") });
  copy.exec(extrasTable);
  copy.sql("insert into backup_extras values (?, ?, ?)").run(audit_key, head, now.toISOString());
  return head;
}

export function dropExtras(copy: Connection): void {
  copy.exec("drop table backup_extras");
}

/** Everything that can be said against a backup without writing anything; its audit chain is verified in the copy. */
export function readExtras(file: string): BackupExtras {
  if (!existsSync(file)) throw notABackup(file, "it does not exist");
  let copy;
  try {
    const wrong = wrongBytes(file);
    if (wrong !== null) throw notABackup(file, wrong);
    copy = connect(file, "immutable");
    const version = Number(copy.sql("pragma user_version").get()?.["user_version"]);
    if (version > schemaVersion)
      throw notABackup(file, `it was made by a newer Drover (version ${version}, this one knows ${schemaVersion})`);
    if (!(version >= 1)) throw notABackup(file, `it has the version ${version}, which no Drover has made`);
    const foreign = foreignContents(copy);
    if (foreign !== null) throw notABackup(file, foreign);
    const row = copy.sql("select audit_key, audit_head, made_at from backup_extras").get();
    if (row === undefined) throw notABackup(file, "it has no head");
    // The statement selects exactly these columns, written by addExtras.
    return { ...(row as unknown as Omit<BackupExtras, "version">), version };
  } catch (fault) {
    if (fault instanceof RequestError) throw fault;
    throw notABackup(file, fault instanceof Error ? fault.message : String(fault));
  } finally {
    copy?.close();
  }
}

export function notABackup(file: string, why: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `${file} is not a backup that can be restored: ${why}.`,
    field: file,
    next: "Give a file that drover backup has made.",
  });
}

function exists(file: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `${file} exists already.`,
    field: file,
    next: "Choose another name, or move it away: a backup never overwrites anything.",
  });
}
