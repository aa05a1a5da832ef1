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
 * How far the chain had come, kept outside the database so that a truncated tail shows. Written
 * after each commit and never synced: a crash leaves it behind the database, which is fine; it is
 * never ahead. The text has a fixed size and is overwritten in place.
 */
export interface ChainHead {
  /** Rows ever written, pruned ones too. */
  count: number;
  /** Of the last batch, in hex. */
  mac: string;
}

export interface HeadFile {
  /** null where there is no file, or none that can be read as a head. */
  read(): ChainHead | null;
  /** Never makes a file that someone took away, so that this shows. */
  advance(head: ChainHead): void;
  /** Whatever the file said, and where there is none. */
  replace(head: ChainHead): void;
  close(): void;
}

const countDigits = 16;
const textSize = countDigits + 1 + 64 + 1;

export function formatHead(head: ChainHead): string {
  return `${head.count}:${head.mac}`;
}

/** `count:mac`, or a mac alone. null for anything else. */
export function parseHead(text: string): { count: number | null; mac: string } | null {
  const found = /^(?:0*(\d{1,16}):)?([0-9a-f]{64})$/i.exec(text.trim());
  if (!found?.[2]) return null;
  return { count: found[1] === undefined ? null : Number(found[1]), mac: found[2].toLowerCase() };
}

/** There before the first commit, so that a missing file always means that someone removed it. */
export function createHead(directory: string): void {
  const file = auditHeadFile(directory);
  const fd = openPlain(file, constants.O_RDWR | constants.O_CREAT);
  try {
    advanceIn(fd, file, { count: 0, mac: "0".repeat(64) });
    // A file that a power cut left empty would look like one that someone emptied.
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

/** null also where its name is not a plain file: reading from a pipe would block. */
export function readHead(file: string): ChainHead | null {
  try {
    return headFrom(textOf(file));
  } catch (fault) {
    if (isMissing(fault) || isNotPlain(fault)) return null;
    throw fault;
  }
}

/** A folder that this user cannot look into holds none of theirs. */
export function readHeadCopy(file: string): ChainHead | null {
  try {
    return readHead(file);
  } catch (fault) {
    if (fault instanceof Error && ["EACCES", "ENOTDIR"].includes(String(Reflect.get(fault, "code")))) return null;
    throw fault;
  }
}

export function openHead(file: string): HeadFile {
  let fd: number | null = null;
  return {
    read() {
      try {
        fd ??= openPlain(file, constants.O_RDWR);
      } catch (fault) {
        if (isMissing(fault)) return null;
        throw fault;
      }
      return headFrom(textIn(fd));
    },
    advance(head) {
      fd ??= openPlain(file, constants.O_RDWR);
      advanceIn(fd, file, head);
    },
    replace(head) {
      fd ??= openPlain(file, constants.O_RDWR | constants.O_CREAT);
      writeSync(fd, fixedSize(head), 0);
      if (fstatSync(fd).size > textSize) ftruncateSync(fd, textSize);
    },
    close() {
      if (fd !== null) closeSync(fd);
      fd = null;
    },
  };
}

/**
 * The head a second time, outside the state directory: it shows that the record as a whole has gone or is another one.
 * Unlike audit.head it may be missing, as after a move to another machine, and is made where it is.
 */
export function openHeadCopy(file: string): HeadFile {
  const plain = openHead(file);
  return {
    ...plain,
    advance(head) {
      const kept = plain.read();
      if (kept === null || kept.count < head.count) this.replace(head);
    },
    replace(head) {
      try {
        plain.replace(head);
      } catch (fault) {
        if (!isMissing(fault)) throw fault;
        mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
        plain.replace(head);
      }
    },
  };
}

/** Whatever it said: the record has been moved or restored by its owner. */
export function replaceHeadCopy(file: string, head: ChainHead): void {
  const copy = openHeadCopy(file);
  try {
    copy.replace(head);
  } finally {
    copy.close();
  }
}

function advanceIn(fd: number, file: string, head: ChainHead): void {
  const text = fixedSize(head);
  // Another process may have come further in the meantime; texts of a fixed size compare as their counts.
  if (textOf(file) < text) writeSync(fd, text, 0);
}

function textOf(file: string): string {
  const fd = openPlain(file, constants.O_RDONLY);
  try {
    return textIn(fd);
  } finally {
    closeSync(fd);
  }
}

/** A little more than a head has, so that what is longer is not taken for one. */
function textIn(fd: number): string {
  const bytes = Buffer.alloc(textSize + 1);
  return bytes.toString("latin1", 0, readSync(fd, bytes, 0, bytes.length, 0));
}

/** Never waits for the other end of a pipe, and follows no link. */
function openPlain(file: string, flags: number): number {
  const fd = openSync(file, flags | constants.O_NONBLOCK | constants.O_NOFOLLOW, 0o600);
  if (fstatSync(fd).isFile()) return fd;
  closeSync(fd);
  throw Object.assign(new Error(`${file} is not a plain file`), { code: "ELOOP" });
}

function headFrom(text: string): ChainHead | null {
  const head = parseHead(text);
  return head === null || head.count === null ? null : { count: head.count, mac: head.mac };
}

function isMissing(fault: unknown): boolean {
  return fault instanceof Error && Reflect.get(fault, "code") === "ENOENT";
}

/** A link, a folder, a socket or a device: opening them fails with these, or is refused above. */
function isNotPlain(fault: unknown): boolean {
  return fault instanceof Error && ["ELOOP", "EISDIR", "ENXIO", "ENODEV"].includes(String(Reflect.get(fault, "code")));
}

function fixedSize(head: ChainHead): string {
  return `${String(head.count).padStart(countDigits, "0")}:${head.mac}\n`;
}
