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
import { errorCode } from "./error-code.ts";

/** A trust decision about one directory. */
export interface TrustEntry {
  /** The real path. */
  path: string;
  trusted: boolean;
  /** The owner when it was trusted. If another user puts a directory in its place, the decision does not apply to it. */
  owner: number | null;
  at: string;
}

interface TrustFile {
  entries: TrustEntry[];
  /** Why the file is ignored. */
  problem: string | null;
}

const maxBytes = 1024 * 1024;

/** Drover's configuration directory of this user; null without a home directory, as no other location is safe. */
export function userConfigDirectory(env: Environment): string | null {
  const base = env["XDG_CONFIG_HOME"];
  if (base && isAbsolute(base)) return join(base, "drover");
  const home = env["HOME"];
  return home && isAbsolute(home) ? join(home, ".config", "drover") : null;
}

/** Ignores the file unless it is a regular file that only this user can write. */
export function readTrustFile(env: Environment): TrustFile {
  const directory = userConfigDirectory(env);
  if (directory === null) return { entries: [], problem: null };
  const file = join(directory, "trusted.json");
  const ignored = (why: string): TrustFile => ({ entries: [], problem: `${file} is ignored: ${why}` });
  let fd: number;
  try {
    // O_NONBLOCK: opening a named pipe would block until somebody writes to it
    fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    const code = errorCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return { entries: [], problem: null };
    return ignored(code === "ELOOP" ? "it is a link" : `it cannot be read (${code})`);
  }
  try {
    const { mode, uid, size } = fstatSync(fd, { bigint: false });
    if ((mode & constants.S_IFMT) !== constants.S_IFREG) return ignored("it is not a regular file");
    if (uid !== (process.getuid?.() ?? uid)) return ignored(`it belongs to user ${uid}`);
    if ((mode & 0o022) !== 0) return ignored(`others can write to it. Close it: chmod 600 ${file}`);
    if (size > maxBytes) return ignored(`it is larger than ${maxBytes / 1024} KB`);
    const entries = parseEntries(readFileSync(fd, "utf8"));
    return entries === null ? ignored("its content was not written by Drover") : { entries, problem: null };
  } finally {
    closeSync(fd);
  }
}

/** Only one process at a time changes the file. Readers see the old or the new version, never a partial one. */
export function changeTrustFile(env: Environment, change: (entries: TrustEntry[]) => TrustEntry[]): void {
  const directory = userConfigDirectory(env);
  if (directory === null)
    throw refused("HOME is not set, so trust decisions cannot be stored.", "Set HOME, or use DROVER_TRUST.");
  const file = join(directory, "trusted.json");
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    withLock(`${file}.lock`, () => {
      const { entries, problem } = readTrustFile(env);
      if (problem !== null) throw refused(problem, "Fix or remove that file, then repeat the command.");
      replaceFile(file, `${JSON.stringify({ version: 1, folders: change(entries) }, null, 2)}\n`);
    });
  } catch (error) {
    if (error instanceof HostError) throw error;
    throw refused(
      `${file} cannot be written (${errorCode(error)}).`,
      "Make its directory writable for this user.",
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
  for (const each of value.folders as unknown[]) {
    if (typeof each !== "object" || each === null || !("path" in each) || !("trusted" in each)) return null;
    const { path, trusted } = each;
    if (typeof path !== "string" || !isAbsolute(path) || typeof trusted !== "boolean") return null;
    const owner = "owner" in each && typeof each.owner === "number" ? each.owner : null;
    const at = "at" in each && typeof each.at === "string" ? each.at : "";
    entries.push({ path, trusted, owner, at });
  }
  return entries;
}

function replaceFile(file: string, text: string): void {
  const draft = `${file}.${process.pid}`;
  const fd = openSync(draft, constants.O_WRONLY | constants.O_CREAT | constants.O_TRUNC | constants.O_NOFOLLOW, 0o600);
  try {
    writeSync(fd, text);
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
  renameSync(draft, file);
  const parent = openSync(dirname(file), "r");
  try {
    fsyncSync(parent);
  } finally {
    closeSync(parent);
  }
}

const waitMs = 10_000;

/** The lock file contains the pid of its holder, so the lock of a dead process can be removed. */
function withLock(lock: string, work: () => void): void {
  const deadline = Date.now() + waitMs;
  while (!tryLock(lock)) {
    const holder = Number(readIfExists(lock));
    if (holder > 0 && !isAlive(holder)) removeIfExists(lock);
    else if (Date.now() > deadline)
      throw refused(`Another process holds ${lock}.`, `If none is running, remove it: rm ${lock}`);
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
    if (errorCode(error) === "EEXIST") return false;
    throw error;
  }
}

function readIfExists(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    errorCode(error);
    return "";
  }
}

function removeIfExists(file: string): void {
  try {
    unlinkSync(file);
  } catch (error) {
    if (errorCode(error) !== "ENOENT") throw error;
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errorCode(error) === "EPERM";
  }
}

function refused(message: string, next: string, cause?: unknown): HostError {
  return new HostError({ code: "DROVER-TRU-001", message, next, cause });
}
