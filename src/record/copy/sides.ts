import type { Row, SqlValue, Work } from "../query.ts";
import type { Table } from "./tables.ts";

/** A record that nobody changes while it is read. */
export interface StillRecord {
  /** For people. */
  readonly name: string;
  carryOut<T>(work: Work<T>): Promise<T>;
  /** The rows that follow `after` in the order of the table's key; none at the end. Never more than memory has room for. */
  page(table: Table, after: Row | null): Promise<Row[]>;
  /** The bytes behind a hash, in pieces; null where they are not there. */
  content(sha256: string): Promise<AsyncIterable<Uint8Array> | null>;
}

/** One that is being made. All of it is there in the end, or nothing. */
export interface NewRecord extends StillRecord {
  /** What is wrong with it may show only in `settled`. */
  insert(table: Table, rows: readonly Row[]): Promise<void>;
  /** The same. `pieces` may end with a fault, and everything with it. */
  addContent(sha256: string, pieces: AsyncIterable<Uint8Array>): Promise<void>;
  settled(): Promise<void>;
}

/** A page has no more rows than this, and once its long columns have so many bytes it has no further ones. */
export const mostRows = 500;
export const mostBytes = 1024 * 1024;

export function keyOf({ key }: Table, row: Row): SqlValue[] {
  return key.map((column) => row[column] ?? null);
}

export function valuesOf({ columns }: Table, row: Row): SqlValue[] {
  return columns.map((column) => row[column] ?? null);
}

/** Of what may be long in it; roughly, as not every character is one byte. */
export function longBytes({ long }: Table, row: Row): number {
  let bytes = 0;
  for (const column of long) {
    const value = row[column];
    if (typeof value === "string" || value instanceof Uint8Array) bytes += value.length;
  }
  return bytes;
}

/** Cut where they are longer: what is given in one piece is held in memory as one. */
export async function* inPieces(bytes: AsyncIterable<Uint8Array>, most: number): AsyncGenerator<Uint8Array> {
  for await (const piece of bytes)
    for (let from = 0; from < piece.length; from += most) yield piece.subarray(from, from + most);
}
