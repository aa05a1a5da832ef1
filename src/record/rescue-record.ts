import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { HostError } from "../model/errors.ts";
import { addExtras, writeBackup } from "./backup-file.ts";
import { backUpBlobs } from "./blobs/backup-blobs.ts";
import { connect, type Connection } from "./sqlite/connection.ts";
import { createRecordDirectory } from "./state-directory.ts";

interface LostRecord {
  connection: Connection;
  directory: string;
  /** In the user's state directory, see `StoreOptions`. */
  headCopy?: string | undefined;
  key: Uint8Array;
  now: Date;
}

export interface RescueResult {
  /** null if it could not be written anywhere. */
  file: string | null;
  error: HostError;
}

/**
 * Backs up the open database after its files were deleted or replaced; SQLite can still read them. Returns the error with
 * the next step added. The backup contains the key, so it goes where commands of runs cannot see it: into the record
 * directory if that still exists, into the user's state directory, or else into a new record directory.
 */
export async function rescueRecord(error: HostError, record: LostRecord): Promise<RescueResult> {
  const name = `drover-rescued-${record.now.toISOString().replaceAll(/[:.]/g, "-")}.backup`;
  const errors: unknown[] = [];
  for (const target of listRescueDirectories(record)) {
    try {
      createRescueDirectory(target, record);
      const file = join(target, name);
      await writeBackup(file, (part) => fillBackup(part, record));
      return { file, error: addNextStep(error, formatRestoreInstructions(file, record)) };
    } catch (cause) {
      errors.push(cause);
    }
  }
  const next = `The record now exists only in this process and could not be saved elsewhere: ${errors.map(String).join("; ")}. Before you stop Drover, put its files back, or free some space and wait for the next attempt.`;
  return { file: null, error: addNextStep(error, next) };
}

function listRescueDirectories({ directory, headCopy }: LostRecord): string[] {
  const userStateDirectories = headCopy === undefined ? [] : [join(dirname(dirname(headCopy)), "rescued")];
  return existsSync(directory) ? [directory, ...userStateDirectories] : [...userStateDirectories, directory];
}

function createRescueDirectory(target: string, { directory }: LostRecord): void {
  if (target === directory) createRecordDirectory(target);
  else mkdirSync(target, { recursive: true, mode: 0o700 });
}

function formatRestoreInstructions(file: string, { directory }: LostRecord): string {
  const moveStep =
    dirname(file) === directory
      ? `move everything but that file out of ${directory}`
      : `move ${directory} away if it exists`;
  return `The record up to this moment is in ${file}. Stop Drover, ${moveStep}, then run: drover restore --keep-tokens ${file}`;
}

async function fillBackup(part: string, { connection, directory, key, now }: LostRecord): Promise<void> {
  connection.sql("vacuum into ?").run(part);
  const copy = connect(part, "write");
  try {
    // writeBackup syncs the whole file at the end.
    copy.exec("pragma journal_mode = delete; pragma synchronous = off");
    addExtras(copy, key, now);
    await backUpBlobs(directory, copy);
  } finally {
    copy.close();
  }
}

function addNextStep({ code, message, field = "" }: HostError, next: string): HostError {
  return new HostError({ code, message, field, next });
}
