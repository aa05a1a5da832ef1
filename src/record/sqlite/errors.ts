import { statfsSync } from "node:fs";
import { dirname } from "node:path";
import { HostError } from "../../model/errors.ts";

const busy = 5;
const locked = 6;
const readOnly = 8;
const ioError = 10;
const corrupt = 11;
const full = 13;
const cannotOpen = 14;
const protocol = 15;
const badFormat = 24;
const notADatabase = 26;

/** Whether another connection holds the lock, so that a retry may succeed. */
export function isBusy(error: unknown): boolean {
  const code = getSqliteCode(error);
  return code === busy || code === locked || code === protocol;
}

/** Turns errors of SQLite and the file system into HostErrors. Anything else is returned unchanged. */
export function toHostError(error: unknown, file: string): unknown {
  const code = getSqliteCode(error);
  if (isSchemaChanged(error)) return createDamagedError(file, error);
  if (code === null) return toFileError(error, file);
  if (code === full || (isWriteError(code) && isDiskFull(file))) return createNoSpaceError(file, error);
  if (code === readOnly || (code === cannotOpen && isDenied(getSystemErrno(error))))
    return createNotWritableError(dirname(file), error);
  switch (code) {
    case corrupt:
    case badFormat:
    case notADatabase:
      return createDamagedError(file, error);
    case cannotOpen:
    case ioError:
      return new HostError({
        code: "DROVER-STA-006",
        message: `The database ${file} cannot be opened: ${getErrorMessage(error)}.`,
        field: file,
        next: `Check that ${dirname(file)} exists, is a directory that you own and is on a healthy disk, or choose another with DROVER_STATE_DIR.`,
        cause: error,
      });
    default:
      return error;
  }
}

/** All statements fit the migrated schema, so a missing table or column means that somebody changed it. */
function isSchemaChanged(error: unknown): boolean {
  const isSqlite = getProperty(error, "code") === "ERR_SQLITE_ERROR" || getProperty(error, "errcode") === 1;
  return isSqlite && /^no such (?:table|column|index): |has no column named /.test(getErrorMessage(error));
}

export function createLockedError(file: string, waitedMs: number, cause: unknown): HostError {
  return new HostError({
    code: "DROVER-STA-003",
    message: `The database ${file} was locked by another process for more than ${waitedMs / 1000} s.`,
    field: file,
    next: `Find the process that holds it (fuser ${file}), stop it or wait for it, then try again.`,
    cause,
  });
}

export function createDamagedError(file: string, cause: unknown): HostError {
  return new HostError({
    code: "DROVER-STA-004",
    message: `The database ${file} is damaged: ${getErrorMessage(cause)}.`,
    field: file,
    next: `Restore it from a backup, or move ${dirname(file)} aside to start with an empty one. Nothing was changed.`,
    cause,
  });
}

function toFileError(error: unknown, file: string): unknown {
  const code = getErrnoCode(error);
  if (code === "ENOSPC" || code === "EDQUOT") return createNoSpaceError(file, error);
  if (code === "EACCES" || code === "EPERM" || code === "EROFS") return createNotWritableError(dirname(file), error);
  if (code === null) return error;
  return new HostError({
    code: "DROVER-STA-006",
    message: `The state directory ${dirname(file)} cannot be used: ${getErrorMessage(error)}.`,
    field: dirname(file),
    next: "Choose another with DROVER_STATE_DIR.",
    cause: error,
  });
}

function createNoSpaceError(file: string, cause: unknown): HostError {
  return new HostError({
    code: "DROVER-STA-002",
    message: `No space left for the database ${file}.`,
    field: file,
    next: "Free some space on that disk, then try again. Nothing was stored.",
    cause,
  });
}

function createNotWritableError(directory: string, cause: unknown): HostError {
  return new HostError({
    code: "DROVER-STA-001",
    message: `Drover cannot write to the state directory ${directory}: ${getErrorMessage(cause)}.`,
    field: directory,
    next: "Make it and the files in it writable for this user, or choose another with DROVER_STATE_DIR.",
    cause,
  });
}

function isWriteError(code: number): boolean {
  return code === ioError || code === cannotOpen;
}

/** SQLite reports a full disk as an I/O error if its shared memory file cannot grow, so check the disk itself. */
function isDiskFull(file: string): boolean {
  try {
    return statfsSync(dirname(file)).bavail === 0;
  } catch {
    // The directory does not exist, so that is the problem rather than a full disk.
    return false;
  }
}

function isDenied(errno: number): boolean {
  const [notPermitted, accessDenied, readOnlyFileSystem] = [1, 13, 30];
  return errno === notPermitted || errno === accessDenied || errno === readOnlyFileSystem;
}

/** The primary result code, without the extension in its upper bits. */
function getSqliteCode(error: unknown): number | null {
  const code = getProperty(error, "errcode");
  if (typeof code === "number") return code & 0xff;
  return getProperty(error, "code") === "ERR_SQLITE_ERROR"
    ? (codesByMessage.get(getErrorMessage(error)) ?? null)
    : null;
}

/** The result codes of SQLite's messages, because the driver throws errors of reading statements without a code. */
const codesByMessage = new Map([
  ["database is locked", busy],
  ["database table is locked", locked],
  ["locking protocol", protocol],
  ["attempt to write a readonly database", readOnly],
  ["disk I/O error", ioError],
  ["database disk image is malformed", corrupt],
  ["database or disk is full", full],
  ["unable to open database file", cannotOpen],
  ["file is not a database", notADatabase],
]);

function getSystemErrno(error: unknown): number {
  const errno = getProperty(error, "systemErrno");
  return typeof errno === "number" ? errno : 0;
}

function getErrnoCode(error: unknown): string | null {
  const code = getProperty(error, "code");
  return typeof code === "string" && getProperty(error, "syscall") !== undefined ? code : null;
}

function getProperty(error: unknown, name: string): unknown {
  return error instanceof Error ? Reflect.get(error, name) : undefined;
}

function getErrorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
