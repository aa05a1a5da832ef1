import type { Engine } from "./engine.ts";
import { all, type Row, type SqlValue, type Work } from "./query.ts";

/** Which rows of a table to remove. All fields are SQL from the source code, never user input. */
export interface PruneTarget {
  table: string;
  /** Column to page by. It must lead an index. Rows with the same key are removed together. */
  key: string;
  /** A value below every key: text or a number. */
  from: string | number;
  /**
   * Which rows to remove. Evaluated under the write lock too, so it must be as cheap as an index lookup. `?3`, ... are the
   * values.
   */
  condition: string;
  /** Columns of each removed row, passed to `onRemoved`. */
  returning?: string;
}

const rowsPerPage = 500;

/**
 * Removes unused rows from a table of any size and returns their number. Searches page by page without a lock. If a page
 * has unused rows, deletes them under the write lock, which evaluates the condition again.
 */
export async function pruneInPages(
  engine: Engine,
  { table, key, from, condition, returning = "1 as gone" }: PruneTarget,
  values: readonly SqlValue[] = [],
  onRemoved: (rows: readonly Row[]) => Work<void> = doNothing,
): Promise<number> {
  const selectPage = `select ${key} as key, (${condition}) as unused from ${table} where ${key} > ?1 order by ${key} limit ?2`;
  const deletePage = `delete from ${table} where ${key} > ?1 and ${key} <= ?2 and ${condition} returning ${returning}`;
  let removedCount = 0;
  for (let after: SqlValue = from; ;) {
    const page = await engine.read(() => readRows(selectPage, after, rowsPerPage, ...values));
    const last: SqlValue = page.at(-1)?.["key"] ?? after;
    if (page.some(({ unused }) => unused === 1)) removedCount += await engine.write(() => removeUpTo(after, last));
    if (page.length < rowsPerPage) return removedCount;
    after = last;
    // SQLite runs synchronously, so yield to the event loop.
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }

  function* removeUpTo(after: SqlValue, last: SqlValue): Work<number> {
    const rows = yield all(deletePage, after, last, ...values);
    yield* onRemoved(rows);
    return rows.length;
  }
}

function* readRows(text: string, ...values: SqlValue[]): Work<Row[]> {
  return yield all(text, ...values);
}

function* doNothing(): Work<void> {}
