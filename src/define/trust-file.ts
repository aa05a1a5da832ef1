import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeSync,
} from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { HostError } from "../model/errors.ts";
import type { Environment } from "../model/environment.ts";
import { requireErrorCode } from "./error-code.ts";

/** A trust decision about one directory. */
export interface TrustEntry {
  /** The real path. */
  path: string;
  trusted: boolean;
  /** The user id that owned the directory when it was trusted. The decision does not apply if the owner changes. */
  owner: number | null;
  at: string;
}

interface TrustFile {
  entries: TrustEntry[];
  /** Why the file is ignored, and what to do; null if it is not ignored. */
  problem: string | null;
}

const maxBytes = 1024 * 1024;
const moveAway = "Move it away, then trust your directories again with `drover trust`.";

/** Returns this user's configuration directory for Drover; null without a home directory, because no other location is safe. */
export function getUserConfigDirectory(env: Environment): string | null {
  const base = env["XDG_CONFIG_HOME"];
  if (base && isAbsolute(base)) return join(base, "drover");
  const home = env["HOME"];
  return home && isAbsolute(home) ? join(home, ".config", "drover") : null;
}

/** Reads the trust decisions. Ignores the file unless it is a regular file that only this user can write to. */
export function readTrustFile(env: Environment): TrustFile {
  const directory = getUserConfigDirectory(env);
  if (directory === null) return { entries: [], problem: null };
  const file = join(directory, "trusted.json");
  const ignore = (reason: string): TrustFile => ({ entries: [], problem: `${file} is ignored: ${reason}` });
  let fd: number;
  try {
    // O_NONBLOCK, because opening a named pipe would block until another process writes to it.
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = requireErrorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return { entries: [], problem: null };
    return ignore(`${code === "ELOOP" ? "it is a symbolic link" : `it cannot be read (${code})`}. ${moveAway}`);
  }
  try {
    const { mode, uid, size } = fstatSync(fd, { bigint: false });
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) return ignore(`it is not a regular file. ${moveAway}`);
    if (uid !== (process.getuid?.() ?? uid)) return ignore(`it belongs to user ${uid}. ${moveAway}`);
    if ((mode & 0o022) !== 0) return ignore(`other users can write to it. Restrict it with \`chmod 600 ${file}\`.`);
    if (size > maxBytes) return ignore(`it is larger than ${maxBytes / 1024} KB. ${moveAway}`);
    const entries = parseEntries(readFileSync(fd, "utf8"));
    return entries === null ? ignore(`it is not a valid trust file. ${moveAway}`) : { entries, problem: null };
  } finally {
    closeSync(fd);
  }
}

/** Only one process at a time changes the file. Readers see the old or the new version, never a partial one. */
export function changeTrustFile(env: Environment, change: (entries: TrustEntry[]) => TrustEntry[]): void {
  const directory = getUserConfigDirectory(env);
  if (directory === null)
    throw createTrustFileError(
      "HOME is not set, so trust decisions cannot be stored.",
      "Set HOME, or use DROVER_TRUST.",
    );
  const file = join(directory, "trusted.json");
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    withLock(`${file}.lock`, () => {
      const { entries, problem } = readTrustFile(env);
      if (problem !== null)
        throw createTrustFileError(
          `The decision was not stored. ${problem}`,
          "Fix or delete the file, then run the command again.",
        );
      replaceFile(file, `${JSON.stringify({ version: 1, folders: change(entries) }, null, 2)}\n`);
    });
  } catch (error) {
    if (error instanceof HostError) throw error;
    throw createTrustFileError(
      `${file} cannot be written (${requireErrorCode(error)}).`,
      "Make its directory writable by this user.",
      error,
    );
  }
}

function parseEntries(text: string): TrustEntry[] | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return null;
    throw error;
  }
  if (typeof value !== "object" || value === null || !("folders" in value) || !Array.isArray(value.folders))
    return null;
  const entries: TrustEntry[] = [];
  for (const entry of value.folders as unknown[]) {
    if (typeof entry !== "object" || entry === null || !("path" in entry) || !("trusted" in entry)) return null;
    const { path, trusted } = entry;
    if (typeof path !== "string" || !isAbsolute(path) || typeof trusted !== "boolean") return null;
    const owner = "owner" in entry && typeof entry.owner === "number" ? entry.owner : null;
    const at = "at" in entry && typeof entry.at === "string" ? entry.at : "";
    entries.push({ path, trusted, owner, at });
  }
  return entries;
}

function replaceFile(file: string, text: string): void {
  const partialFile = `${file}.${process.pid}`;
  const fd = openSync(
    partialFile,
    constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW,
    0o600,
  );
  try {
    writeSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(partialFile, file);
  const parent = openSync(dirname(file), "r");
  try {
    fsyncSync(parent);
  } finally {
    closeSync(parent);
  }
}

const lockTimeoutMs = 10_000;

/** The lock file contains the pid of its holder, so the lock of a dead process can be removed. */
function withLock(lock: string, work: () => void): void {
  const deadline = Date.now() + lockTimeoutMs;
  while (!tryLock(lock)) {
    const holder = Number(readIfExists(lock));
    if (holder > 0 && !isAlive(holder)) removeIfExists(lock);
    else if (Date.now() > deadline)
      throw createTrustFileError(
        `Another process holds ${lock}.`,
        `If no other Drover process is running, remove the lock: rm ${lock}`,
      );
    else Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
  }
  try {
    work();
  } finally {
    removeIfExists(lock);
  }
}

function tryLock(lock: string): boolean {
  try {
    const fd = openSync(lock, "wx", 0o600);
    writeSync(fd, String(process.pid));
    closeSync(fd);
    return true;
  } catch (error) {
    if (requireErrorCode(error) === "EEXIST") return false;
    throw error;
  }
}

function readIfExists(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (requireErrorCode(error) !== "ENOENT") throw error;
    return "";
  }
}

function removeIfExists(file: string): void {
  try {
    unlinkSync(file);
  } catch (error) {
    if (requireErrorCode(error) !== "ENOENT") throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return requireErrorCode(error) === "EPERM";
  }
}

function createTrustFileError(message: string, next: string, cause?: unknown): HostError {
  return new HostError({ code: "DROVER-TRU-001", message, next, cause });
}
