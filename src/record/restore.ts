import { chmodSync, copyFileSync, existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { RequestError } from "../model/errors.ts";
import { headFile } from "./audit/head.ts";
import { keyFile } from "./audit/key.ts";
import { verifyAudit } from "./audit/verify.ts";
import { dropExtras, notABackup, readExtras, type Restored } from "./backup-file.ts";
import type { RecordPlace } from "./backup.ts";
import { restoreBlobs } from "./blobs/backup-blobs.ts";
import { connect } from "./sqlite/connection.ts";
import { hostFault } from "./sqlite/faults.ts";
import { createStateDirectory, databaseFile } from "./state-directory.ts";
import { sync } from "./sync.ts";

/**
 * A record made from a backup, whichever engine that was made of. Never over an existing one; and where the chain of
 * the copy does not verify, nothing is left behind.
 */
export async function restoreRecord(place: RecordPlace, file: string): Promise<Restored> {
  if ("directory" in place) return restoreStore({ ...place, file });
  const { restoreIntoPostgres } = await import("./copy/restore-postgres.ts");
  return restoreIntoPostgres(place, file, new Date());
}

export async function restoreStore({ directory, file }: { directory: string; file: string }): Promise<Restored> {
  for (const path of [databaseFile(directory), keyFile(directory)])
    if (existsSync(path)) throw occupied(directory, path);
  const extras = readExtras(file);
  const made: string[] = [];
  try {
    createStateDirectory(directory);
    made.push(databaseFile(directory));
    const part = join(directory, "drover.db.part");
    made.push(part);
    copyFileSync(file, part);
    chmodSync(part, 0o600);
    unpack(directory, part, made);
    sync(part);
    made.push(keyFile(directory), headFile(directory));
    if (extras.audit_key !== null)
      writeFileSync(keyFile(directory), `${Buffer.from(extras.audit_key).toString("hex")}\n`, {
        mode: 0o600,
        flag: "wx",
      });
    writeFileSync(headFile(directory), headText(extras.audit_head), { mode: 0o600 });
    renameSync(part, databaseFile(directory));
    sync(directory);
    const audit = await verifyAudit({ directory });
    // What the chain itself tells of the past is no fault of the copy, and goes with it.
    if (!audit.ok && !audit.first_bad?.told)
      throw notABackup(file, `its audit chain is broken (${audit.first_bad?.what ?? "unknown"})`);
    return { made_at: extras.made_at, audit };
  } catch (fault) {
    for (const path of made) for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
    throw hostFault(fault, databaseFile(directory));
  }
}

/** What belongs beside the database is put there. */
function unpack(directory: string, part: string, made: string[]): void {
  const copy = connect(part, "write");
  try {
    dropExtras(copy);
    restoreBlobs(directory, copy, made);
    copy.exec("pragma journal_mode = wal");
  } finally {
    copy.close();
  }
}

/** As audit.head is written: its count has a fixed size. */
function headText(head: string): string {
  const [count = "0", mac = ""] = head.split(":");
  return `${count.padStart(16, "0")}:${mac}\n`;
}

function occupied(directory: string, path: string): RequestError {
  return new RequestError({
    code: "DROVER-USE-001",
    message: `There is a state in ${directory} already (${path}).`,
    field: directory,
    next: "Stop its coordinator and move the directory away, or restore to another one with DROVER_STATE_DIR.",
  });
}
