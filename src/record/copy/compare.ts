import type { Row, SqlValue } from "../query.ts";
import { keyOf, type SourceRecord } from "./record-copy.ts";
import type { Table } from "./tables.ts";

export interface Compared {
  /** Rows that both have. */
  rows: number;
  differences: number;
  /** Describes the first difference; null if there is none. */
  first: string | null;
}

/** Compares a table of two records in key order, row by row and column by column. */
export async function compareTable(
  table: Table,
  one: SourceRecord,
  other: SourceRecord,
  progress: (done: number) => void,
): Promise<Compared> {
  const found: Compared = { rows: 0, differences: 0, first: null };
  const differ = (what: string, row: Row): void => {
    found.differences += 1;
    found.first ??= `${table.name}, row ${keyOf(table, row).join(" / ")}: ${what}`;
  };
  const [left, right] = [readerOf(table, one), readerOf(table, other)];
  let [a, b] = [await left(), await right()];
  while (a !== null || b !== null) {
    const order = a === null ? 1 : b === null ? -1 : compareKeys(keyOf(table, a), keyOf(table, b));
    if (a !== null && order < 0) differ(`it is missing in ${other.name}`, a);
    else if (b !== null && order > 0) differ(`it exists only in ${other.name}`, b);
    else if (a !== null && b !== null) {
      found.rows += 1;
      if (found.rows % 1000 === 0) progress(found.rows);
      for (const column of table.columns) if (!same(a[column], b[column])) differ(`its ${column} differs`, a);
    }
    if (order <= 0) a = await left();
    if (order >= 0) b = await right();
  }
  return found;
}

/** Iterates row by row; returns null after the last. */
function readerOf(table: Table, record: SourceRecord): () => Promise<Row | null> {
  let page: Row[] = [];
  let taken = 0;
  return async () => {
    if (taken === page.length) {
      page = await record.page(table, page.at(-1) ?? null);
      taken = 0;
    }
    const row = page[taken] ?? null;
    taken += 1;
    return row;
  };
}

/** The order of both engines: numbers by value, text by its bytes. */
function compareKeys(one: readonly SqlValue[], other: readonly SqlValue[]): number {
  for (const [index, a] of one.entries()) {
    const b = other[index];
    const order =
      typeof a === "string" ? Buffer.compare(Buffer.from(a), Buffer.from(String(b))) : Number(a) - Number(b);
    if (order !== 0) return order;
  }
  return 0;
}

function same(a: SqlValue | undefined, b: SqlValue | undefined): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  return a === b;
}
