import type { Row, SqlValue, Work } from "../query.ts";
import type { Table } from "./tables.ts";

/** A record that does not change while it is read. */
export interface ReadableRecord {
  /** For messages. */
  readonly name: string;
  runWork<T>(work: Work<T>): Promise<T>;
  /** The rows after `after` in key order; empty at the end. Limited in size, so that a page fits into memory. */
  readPage(table: Table, after: Row | null): Promise<Row[]>;
  /** The content with this hash, in pieces; null if it is missing. */
  openContent(sha256: string): Promise<AsyncIterable<Uint8Array> | null>;
}

/** A record being created. If the copy fails, all of it is discarded. */
export interface WritableRecord extends ReadableRecord {
  /** Errors may surface only in `flush`. */
  insert(table: Table, rows: readonly Row[]): Promise<void>;
  /** Errors may surface only in `flush`. If `pieces` throws, the whole copy fails. */
  addContent(sha256: string, pieces: AsyncIterable<Uint8Array>): Promise<void>;
  flush(): Promise<void>;
}

/** A page has at most this many rows, and it ends early once its long columns reach `maxPageBytes`. */
export const maxPageRows = 500;
export const maxPageBytes = 1024 * 1024;

export function getKey({ key }: Table, row: Row): SqlValue[] {
  return key.map((column) => row[column] ?? null);
}

export function getValues({ columns }: Table, row: Row): SqlValue[] {
  return columns.map((column) => row[column] ?? null);
}

/** The approximate size of the long columns. Counts characters of text as bytes. */
export function measureLongColumns({ longColumns }: Table, row: Row): number {
  let bytes = 0;
  for (const column of longColumns) {
    const value = row[column];
    if (typeof value === "string" || value instanceof Uint8Array) bytes += value.length;
  }
  return bytes;
}

/** Splits long pieces, because each piece is held in memory as a whole. */
export async function* splitPieces(bytes: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Uint8Array> {
  for await (const piece of bytes)
    for (let from = 0; from < piece.length; from += maxBytes) yield piece.subarray(from, from + maxBytes);
}
