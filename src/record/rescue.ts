import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { HostError } from "../model/errors.ts";
import { addExtras, writeBackup } from "./backup-file.ts";
import { backUpBlobs } from "./blobs/backup-blobs.ts";
import { connect, type Connection } from "./sqlite/connection.ts";
import { createDirectory } from "./state-directory.ts";

interface Lost {
  connection: Connection;
  directory: string;
  /** In the user's state directory, see `StoreOptions`. */
  headCopy?: string | undefined;
  key: Uint8Array;
  now: Date;
}

export interface Rescued {
  /** null if it could not be written anywhere. */
  file: string | null;
  fault: HostError;
}

/**
 * Backs up the open database after its files were deleted or replaced; SQLite can still read them. Returns the fault extended
 * by what to do next. The backup contains the key, so it goes where commands of runs cannot see it: into the record directory
 * if that still exists, into the user's state directory, or else into a new record directory.
 */
export async function rescueRecord(fault: HostError, lost: Lost): Promise<Rescued> {
  const name = `drover-rescued-${lost.now.toISOString().replaceAll(/[:.]/g, "-")}.backup`;
  const faults: unknown[] = [];
  for (const target of rescueDirectories(lost)) {
    try {
      makeDirectory(target, lost);
      const file = join(target, name);
      await writeBackup(file, (part) => fill(part, lost));
      return { file, fault: withNextStep(fault, restoreInstructions(file, lost)) };
    } catch (refused) {
      faults.push(refused);
    }
  }
  const next = `The record now exists only in this process and could not be saved elsewhere: ${faults.map(String).join("; ")}. Before you stop Drover, put its files back, or free some space and wait for the next attempt.`;
  return { file: null, fault: withNextStep(fault, next) };
}

function rescueDirectories({ directory, headCopy }: Lost): string[] {
  const inUserState = headCopy === undefined ? [] : [join(dirname(dirname(headCopy)), "rescued")];
  return existsSync(directory) ? [directory, ...inUserState] : [...inUserState, directory];
}

function makeDirectory(target: string, { directory }: Lost): void {
  if (target === directory) createDirectory(target);
  else mkdirSync(target, { recursive: true, mode: 0o700 });
}

function restoreInstructions(file: string, { directory }: Lost): string {
  const makeRoom =
    dirname(file) === directory
      ? `move everything but that file out of ${directory}`
      : `move ${directory} away if it exists`;
  return `The record up to this moment is in ${file}. Stop Drover, ${makeRoom}, then run: drover restore --keep-tokens ${file}`;
}

async function fill(part: string, { connection, directory, key, now }: Lost): Promise<void> {
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

function withNextStep({ code, message, field = "" }: HostError, next: string): HostError {
  return new HostError({ code, message, field, next });
}
