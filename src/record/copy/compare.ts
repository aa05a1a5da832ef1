import type { Row, SqlValue } from "../query.ts";
import { getKey, type ReadableRecord } from "./record-copy.ts";
import type { Table } from "./tables.ts";

export interface Comparison {
  /** Rows that both have. */
  rows: number;
  differences: number;
  /** Describes the first difference; null if there is none. */
  first: string | null;
}

/** Compares a table of two records in key order, row by row and column by column. */
export async function compareTable(
  table: Table,
  source: ReadableRecord,
  target: ReadableRecord,
  onProgress: (done: number) => void,
): Promise<Comparison> {
  const comparison: Comparison = { rows: 0, differences: 0, first: null };
  const addDifference = (problem: string, row: Row): void => {
    comparison.differences += 1;
    comparison.first ??= `${table.name}, row ${getKey(table, row).join(" / ")}: ${problem}`;
  };
  const [readSource, readTarget] = [createRowReader(table, source), createRowReader(table, target)];
  let [a, b] = [await readSource(), await readTarget()];
  while (a !== null || b !== null) {
    const order = a === null ? 1 : b === null ? -1 : compareKeys(getKey(table, a), getKey(table, b));
    if (a !== null && order < 0) addDifference(`it is missing in ${target.name}`, a);
    else if (b !== null && order > 0) addDifference(`it exists only in ${target.name}`, b);
    else if (a !== null && b !== null) {
      comparison.rows += 1;
      if (comparison.rows % 1000 === 0) onProgress(comparison.rows);
      for (const column of table.columns) if (!isEqual(a[column], b[column])) addDifference(`its ${column} differs`, a);
    }
    if (order <= 0) a = await readSource();
    if (order >= 0) b = await readTarget();
  }
  return comparison;
}

/** Iterates row by row; returns null after the last. */
function createRowReader(table: Table, record: ReadableRecord): () => Promise<Row | null> {
  let page: Row[] = [];
  let index = 0;
  return async () => {
    if (index === page.length) {
      page = await record.readPage(table, page.at(-1) ?? null);
      index = 0;
    }
    const row = page[index] ?? null;
    index += 1;
    return row;
  };
}

/** The order of both engines: numbers by value, text by its bytes. */
function compareKeys(keyA: readonly SqlValue[], keyB: readonly SqlValue[]): number {
  for (const [index, a] of keyA.entries()) {
    const b = keyB[index];
    const order =
      typeof a === "string" ? Buffer.compare(Buffer.from(a), Buffer.from(String(b))) : Number(a) - Number(b);
    if (order !== 0) return order;
  }
  return 0;
}

function isEqual(a: SqlValue | undefined, b: SqlValue | undefined): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  return a === b;
}
