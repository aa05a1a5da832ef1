import { existsSync, mkdirSync, openSync, closeSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { hostFault } from "./sqlite/faults.ts";

export function databaseFile(directory: string): string {
  return join(directory, "drover.db");
}

/** The directory and an empty database file in it, both for this user alone. */
export function createStateDirectory(directory: string): void {
  const file = databaseFile(directory);
  try {
    createDirectory(directory);
    // SQLite would make it readable for everyone whom the umask allows; its WAL gets the same mode.
    if (!existsSync(file)) closeSync(openSync(file, "a", 0o600));
  } catch (fault) {
    throw hostFault(fault, file);
  }
}

export function createDirectory(directory: string): void {
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  if (basename(directory) === ".drover") writeOnce(join(directory, ".gitignore"), "*\n");
}

function writeOnce(file: string, text: string): void {
  if (!existsSync(file)) writeFileSync(file, text);
}
