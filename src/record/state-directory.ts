import { existsSync, mkdirSync, openSync, closeSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { databaseFile } from "../model/state-layout.ts";
import { toHostError } from "./sqlite/errors.ts";

/** Creates the record directory and an empty database file in it, both accessible to this user only. */
export function createEmptyRecord(directory: string): void {
  const file = databaseFile(directory);
  try {
    createRecordDirectory(directory);
    // SQLite would create it with whatever mode the umask allows. The WAL inherits the mode.
    if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
  } catch (error) {
    throw toHostError(error, file);
  }
}

export function createRecordDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const state = dirname(directory);
  if (basename(state) === ".drover") writeOnce(join(state, ".gitignore"), "*\n");
}

function writeOnce(file: string, text: string): void {
  if (!existsSync(file)) writeFileSync(file, text);
}
