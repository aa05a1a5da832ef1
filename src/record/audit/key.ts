import { closeSync, constants, fstatSync, fsyncSync, linkSync, openSync, readSync, unlinkSync, writeSync } from "node:fs";
import { join } from "node:path";
import { HostError } from "../../model/errors.ts";
import { hostFault } from "../sqlite/faults.ts";

const keyBytes = 32;

export function keyFile(directory: string): string {
  return join(directory, "audit.key");
}

/** null where there is none yet. A key that others can read protects nothing and is refused. */
export function readKey(directory: string): Uint8Array | null {
  const file = keyFile(directory);
  let fd: number;
  try {
    fd = openSync(file, constants.O_RDONLY);
  } catch (fault) {
    if (isMissing(fault)) return null;
    throw keyFault(file, "cannot be read", `Make it readable for this user: chown and chmod 600 ${file}.`, fault);
  }
  try {
    if (process.platform !== "win32" && (fstatSync(fd).mode & 0o077) !== 0) {
      throw keyFault(file, "can be read by others", `Take their rights away: chmod 600 ${file}.`);
    }
    const key = new Uint8Array(keyBytes + 1);
    if (readSync(fd, key, 0, key.length, 0) !== keyBytes) {
      throw keyFault(file, `is not ${keyBytes} bytes long`, "Restore it from a backup.");
    }
    return key.subarray(0, keyBytes);
  } finally {
    closeSync(fd);
  }
}

/** The key of this directory, made once: of processes that race here, one wins and the others take its key. */
export async function createKey(directory: string): Promise<Uint8Array> {
  const { randomBytes } = await import("node:crypto");
  const draft = `${keyFile(directory)}.${process.pid}.${randomBytes(4).toString("hex")}`;
  try {
    const fd = openSync(draft, "wx", 0o600);
    try {
      writeSync(fd, randomBytes(keyBytes));
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    publish(draft, keyFile(directory));
    syncDirectory(directory);
  } catch (fault) {
    throw hostFault(fault, keyFile(directory));
  }
  const key = readKey(directory);
  if (key === null) throw missingKey(directory);
  return key;
}

export function missingKey(directory: string): HostError {
  return keyFault(
    keyFile(directory),
    "is missing, although there is an audit trail made with it",
    `Restore it from a backup, or move ${directory} aside to begin a new trail.`,
  );
}

/** By link, which fails where the name is taken: nobody ever sees half a key. */
function publish(draft: string, file: string): void {
  try {
    linkSync(draft, file);
  } catch (fault) {
    if (!(fault instanceof Error && Reflect.get(fault, "code") === "EEXIST")) throw fault;
  } finally {
    unlinkSync(draft);
  }
}

/** A chain whose key did not survive a power cut could never be verified. */
export function syncDirectory(directory: string): void {
  const fd = openSync(directory, constants.O_RDONLY);
  try {
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

function keyFault(file: string, what: string, next: string, cause?: unknown): HostError {
  return new HostError({ code: "DROVER-AUD-001", message: `The audit key ${file} ${what}.`, field: file, next, cause });
}

function isMissing(fault: unknown): boolean {
  return fault instanceof Error && Reflect.get(fault, "code") === "ENOENT";
}
