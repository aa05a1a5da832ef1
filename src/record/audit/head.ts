import {
  closeSync,
  constants,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  readSync,
  writeSync,
} from "node:fs";
import { dirname } from "node:path";
import { auditHeadFile } from "../../model/state-layout.ts";

/**
 * The last position of the chain, stored outside the database so that truncation is noticed. The file is written after each
 * commit and never synced: after a crash it may be behind the database, but never ahead. Its text has a fixed size and is
 * overwritten in place.
 */
export interface ChainHead {
  /** Rows ever written, including pruned ones. */
  count: number;
  /** MAC of the last batch, in hex. */
  mac: string;
}

export interface HeadFile {
  /** Returns null if the file is missing or does not contain a head. */
  read(): ChainHead | null;
  /** Does not recreate a missing file, so that its removal is noticed. */
  advance(head: ChainHead): void;
  /** Overwrites or creates the file, whatever it contained. */
  replace(head: ChainHead): void;
  close(): void;
}

const countDigits = 16;
const textSize = countDigits + 1 + 64 + 1;

export function formatHead(head: ChainHead): string {
  return `${head.count}:${head.mac}`;
}

/** Parses `count:mac`, or a mac alone. Returns null for anything else. */
export function parseHead(text: string): { count: number | null; mac: string } | null {
  const match = /^(?:0*(\d{1,16}):)?([0-9a-f]{64})$/i.exec(text.trim());
  if (!match?.[2]) return null;
  return { count: match[1] === undefined ? null : Number(match[1]), mac: match[2].toLowerCase() };
}

/** Creates the file before the first commit, so that a missing file always means that it was removed. */
export function createHead(directory: string): void {
  const file = auditHeadFile(directory);
  const fd = openRegularFile(file, constants.O_RDWR | constants.O_CREAT);
  try {
    advanceFile(fd, file, { count: 0, mac: "0".repeat(64) });
    // Without the sync, a power cut could leave an empty file, which looks like tampering.
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** Returns null if the file is missing, has no valid head, or is not a regular file: reading from a pipe would block. */
export function readHead(file: string): ChainHead | null {
  try {
    return parseStoredHead(readText(file));
  } catch (error) {
    if (isMissing(error) || isNotRegularFile(error)) return null;
    throw error;
  }
}

/** Like `readHead`. Also returns null if this user cannot access the directory. */
export function readHeadCopy(file: string): ChainHead | null {
  try {
    return readHead(file);
  } catch (error) {
    if (error instanceof Error && ["EACCES", "ENOTDIR"].includes(String(Reflect.get(error, "code")))) return null;
    throw error;
  }
}

export function openHead(file: string): HeadFile {
  let fd: number | null = null;
  return {
    read() {
      try {
        fd ??= openRegularFile(file, constants.O_RDWR);
      } catch (error) {
        if (isMissing(error)) return null;
        throw error;
      }
      return parseStoredHead(readTextFrom(fd));
    },
    advance(head) {
      fd ??= openRegularFile(file, constants.O_RDWR);
      advanceFile(fd, file, head);
    },
    replace(head) {
      fd ??= openRegularFile(file, constants.O_RDWR | constants.O_CREAT);
      writeSync(fd, formatFixedSize(head), 0);
      if (fstatSync(fd).size > textSize) ftruncateSync(fd, textSize);
    },
    close() {
      if (fd !== null) closeSync(fd);
      fd = null;
    },
  };
}

/**
 * A second copy of the head outside the state directory, which shows if the whole record disappears or is replaced. Unlike
 * audit.head it may be missing, for example after a move to another machine, and is then created.
 */
export function openHeadCopy(file: string): HeadFile {
  const headFile = openHead(file);
  return {
    ...headFile,
    advance(head) {
      const stored = headFile.read();
      if (stored === null || stored.count < head.count) this.replace(head);
    },
    replace(head) {
      try {
        headFile.replace(head);
      } catch (error) {
        if (!isMissing(error)) throw error;
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        headFile.replace(head);
      }
    },
  };
}

/** Replaces the copy after the owner has moved or restored the record. */
export function replaceHeadCopy(file: string, head: ChainHead): void {
  const copy = openHeadCopy(file);
  try {
    copy.replace(head);
  } finally {
    copy.close();
  }
}

function advanceFile(fd: number, file: string, head: ChainHead): void {
  const text = formatFixedSize(head);
  // Another process may be further ahead by now. Texts of a fixed size compare like their counts.
  if (readText(file) < text) writeSync(fd, text, 0);
}

function readText(file: string): string {
  const fd = openRegularFile(file, constants.O_RDONLY);
  try {
    return readTextFrom(fd);
  } finally {
    closeSync(fd);
  }
}

/** Reads one byte more than a head has, so that a longer text is not taken for one. */
function readTextFrom(fd: number): string {
  const bytes = Buffer.alloc(textSize + 1);
  return bytes.toString("latin1", 0, readSync(fd, bytes, 0, bytes.length, 0));
}

/** Opens without blocking on a pipe and without following links. */
function openRegularFile(file: string, flags: number): number {
  const fd = openSync(file, flags | constants.O_NONBLOCK | constants.O_NOFOLLOW, 0o600);
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  throw Object.assign(new Error(`${file} is not a regular file`), { code: "ELOOP" });
}

function parseStoredHead(text: string): ChainHead | null {
  const head = parseHead(text);
  return head === null || head.count === null ? null : { count: head.count, mac: head.mac };
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && Reflect.get(error, "code") === "ENOENT";
}

/** Errors from opening a link, a directory, a socket or a device. */
function isNotRegularFile(error: unknown): boolean {
  return error instanceof Error && ["ELOOP", "EISDIR", "ENXIO", "ENODEV"].includes(String(Reflect.get(error, "code")));
}

function formatFixedSize(head: ChainHead): string {
  return `${String(head.count).padStart(countDigits, "0")}:${head.mac}\n`;
}
