import { closeSync, constants, fsyncSync, ftruncateSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { join } from "node:path";

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

export function headFile(directory: string): string {
  return join(directory, "audit.head");
}

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
  const fd = openSync(headFile(directory), constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    advanceIn(fd, directory, { count: 0, mac: "0".repeat(64) });
    // A file that a power cut left empty would look like one that someone emptied.
    fsyncSync(fd);
  } finally {
    closeSync(fd);
  }
}

export function readHead(directory: string): ChainHead | null {
  let text: string;
  try {
    text = readFileSync(headFile(directory), "utf8");
  } catch (fault) {
    if (isMissing(fault)) return null;
    throw fault;
  }
  return headFrom(text);
}

export function openHead(directory: string): HeadFile {
  let fd: number | null = null;
  return {
    read() {
      try {
        fd ??= openSync(headFile(directory), constants.O_RDWR);
      } catch (fault) {
        if (isMissing(fault)) return null;
        throw fault;
      }
      const bytes = Buffer.alloc(textSize + 1);
      return headFrom(bytes.toString("latin1", 0, readSync(fd, bytes, 0, bytes.length, 0)));
    },
    advance(head) {
      fd ??= openSync(headFile(directory), constants.O_RDWR);
      advanceIn(fd, directory, head);
    },
    replace(head) {
      fd ??= openSync(headFile(directory), constants.O_RDWR | constants.O_CREAT, 0o600);
      writeSync(fd, fixedSize(head), 0);
      ftruncateSync(fd, textSize);
    },
    close() {
      if (fd !== null) closeSync(fd);
      fd = null;
    },
  };
}

function advanceIn(fd: number, directory: string, head: ChainHead): void {
  const text = fixedSize(head);
  // Another process may have come further in the meantime; texts of a fixed size compare as their counts.
  if (readFileSync(headFile(directory), "utf8") < text) writeSync(fd, text, 0);
}

function headFrom(text: string): ChainHead | null {
  const head = parseHead(text);
  return head === null || head.count === null ? null : { count: head.count, mac: head.mac };
}

function isMissing(fault: unknown): boolean {
  return fault instanceof Error && Reflect.get(fault, "code") === "ENOENT";
}

function fixedSize(head: ChainHead): string {
  return `${String(head.count).padStart(countDigits, "0")}:${head.mac}\n`;
}
