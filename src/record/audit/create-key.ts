import { randomBytes } from "node:crypto";
import { closeSync, constants, fsyncSync, linkSync, openSync, unlinkSync, writeSync } from "node:fs";
import { auditKeyFile } from "../../model/state-layout.ts";
import { toHostError } from "../sqlite/errors.ts";
import { createHead } from "./head.ts";
import { createMissingKeyError, readKey } from "./key.ts";

/** Creates the key of this directory once. If several processes race here, one wins and the others use its key. */
export function createKey(directory: string): Uint8Array {
  const partialFile = `${auditKeyFile(directory)}.${process.pid}.${randomBytes(4).toString("hex")}`;
  try {
    const fd = openSync(partialFile, "wx", 0o600);
    try {
      writeSync(fd, `${randomBytes(32).toString("hex")}\n`);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    createHead(directory);
    linkKey(partialFile, auditKeyFile(directory));
    syncDirectory(directory);
  } catch (error) {
    throw toHostError(error, auditKeyFile(directory));
  }
  const key = readKey(directory);
  if (key === null) throw createMissingKeyError(directory);
  return key;
}

/** Links the file into place, which fails if the name is taken. Nobody ever sees a partial key. */
function linkKey(partialFile: string, file: string): void {
  try {
    linkSync(partialFile, file);
  } catch (error) {
    if (!(error instanceof Error && Reflect.get(error, "code") === "EEXIST")) throw error;
  } finally {
    unlinkSync(partialFile);
  }
}

/** If the key did not survive a power cut, the chain could never be verified. */
function syncDirectory(directory: string): void {
  const fd = openSync(directory, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}
