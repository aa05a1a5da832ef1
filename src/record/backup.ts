import { chmodSync, closeSync, existsSync, openSync, renameSync, rmSync } from "node:fs";
import { dirname } from "node:path";
import { RequestError } from "../model/errors.ts";
import { backUpBlobs } from "./blobs/backup-blobs.ts";
import { chainEnd } from "./audit/chain.ts";
import { formatHead } from "./audit/head.ts";
import { readKey } from "./audit/key.ts";
import { carryOut } from "./sqlite/carry-out.ts";
import { connect } from "./sqlite/connection.ts";
import { hostFault } from "./sqlite/faults.ts";
import { copyDatabase } from "./sqlite/driver.ts";
import { openConnection } from "./sqlite/open-connection.ts";
import { databaseFile } from "./state-directory.ts";
import { sync } from "./sync.ts";

export interface BackupOptions {
  directory: string;
  /** Made by this; whoever can read it can also read and continue the audit chain, so only its owner may. */
  file: string;
  lockWaitMs?: number;
}

/** In the copy alone: what lies beside the database in a state directory. */
const extrasTable = `
  create table backup_extras (audit_key blob, audit_head text not null, made_at text not null)`;

/**
 * One file with everything a state directory needs to go on: the database as of one moment, the contents of
 * the files of its runs, the audit key and the head the chain had then. Others may write meanwhile. Logs and the token
 * file are not in it.
 */
export async function backupStore(
  { directory, file, lockWaitMs = 5000 }: BackupOptions,
  now: Date,
): Promise<{ head: string }> {
  if (existsSync(file)) throw exists(file);
  const source = databaseFile(directory);
  // says what is wrong with a database that is missing, damaged or newer, before a copy is begun
  (await openConnection(source, "read", lockWaitMs)).close();
  const part = `${file}.part`;
  try {
    rmSync(part, { force: true });
    // Made here and not by SQLite, which would give it the mode that the umask allows.
    closeSync(openSync(part, "wx", 0o600));
    // on another thread: a coordinator goes on serving meanwhile
    await copyDatabase(source, part);
    chmodSync(part, 0o600);
    const head = await addExtras(directory, part, now);
    sync(part);
    renameSync(part, file);
    sync(dirname(file));
    return { head };
  } catch (fault) {
    rmSync(part, { force: true });
    throw hostFault(fault, file);
  }
}

async function addExtras(directory: string, part: string, now: Date): Promise<string> {
  const copy = connect(part, "write");
  try {
    // synced as a whole in the end
    copy.exec("pragma journal_mode = delete; pragma synchronous = off");
    const { last_no, mac } = carryOut(copy, chainEnd());
    const head = formatHead({ count: last_no, mac: Buffer.from(mac).toString("hex") });
    copy.exec(extrasTable);
    copy.sql("insert into backup_extras values (?, ?, ?)").run(readKey(directory), head, now.toISOString());
    await backUpBlobs(directory, copy);
    return head;
  } finally {
    copy.close();
  }
}

function exists(file: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `${file} exists already.`,
    field: file,
    next: "Choose another name, or move it away: a backup never overwrites anything.",
  });
}
