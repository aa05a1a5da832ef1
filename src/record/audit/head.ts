import { closeSync, constants, openSync, readFileSync, writeSync } from "node:fs";
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
  advance(head: ChainHead): void;
  close(): void;
}

const countDigits = 16;

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
  const head = openHead(directory);
  try {
    head.advance({ count: 0, mac: "0".repeat(64) });
  } finally {
    head.close();
  }
}

export function readHead(directory: string): ChainHead | null {
  let text: string;
  try {
    text = readFileSync(headFile(directory), "utf8");
  } catch (fault) {
    if (fault instanceof Error && Reflect.get(fault, "code") === "ENOENT") return null;
    throw fault;
  }
  const head = parseHead(text);
  return head === null || head.count === null ? null : { count: head.count, mac: head.mac };
}

export function openHead(directory: string): HeadFile {
  let fd: number | null = null;
  return {
    advance(head) {
      fd ??= openSync(headFile(directory), constants.O_RDWR | constants.O_CREAT, 0o600);
      const text = fixedSize(head);
      // Another process may have come further in the meantime; texts of a fixed size compare as their counts.
      if (readFileSync(headFile(directory), "utf8") < text) writeSync(fd, text, 0);
    },
    close() {
      if (fd !== null) closeSync(fd);
      fd = null;
    },
  };
}

function fixedSize(head: ChainHead): string {
  return `${String(head.count).padStart(countDigits, "0")}:${head.mac}\n`;
}
