import type { Engine } from "./engine.ts";
import { all, type Row, type SqlValue, type Work } from "./query.ts";

/** What of a table is to go. All of it is text of the source. */
export interface Unused {
  table: string;
  /** What it is gone through by: an index begins with it. Rows that share one go together. */
  key: string;
  /** Before the first one: a text, or a number. */
  from: string | number;
  /** Which rows go, also judged while others wait: it may cost no more than a look into an index. `?3`, ... are the values. */
  condition: string;
  /** Of each row that went, for `removed`. */
  returning?: string;
}

const atOnce = 500;

/**
 * Removes what is unused from a table of any size, and counts it. It is looked for a page at a time while others write;
 * only where a page has something, that page is gone through again under the lock, and judged anew.
 */
export async function pruneInPages(
  engine: Engine,
  { table, key, from, condition, returning = "1 as gone" }: Unused,
  values: readonly SqlValue[] = [],
  removed: (rows: readonly Row[]) => Work<void> = nothing,
): Promise<number> {
  const look = `select ${key} as key, (${condition}) as unused from ${table} where ${key} > ?1 order by ${key} limit ?2`;
  const remove = `delete from ${table} where ${key} > ?1 and ${key} <= ?2 and ${condition} returning ${returning}`;
  let gone = 0;
  for (let after: SqlValue = from; ;) {
    const page = await engine.read(() => asked(look, after, atOnce, ...values));
    const last: SqlValue = page.at(-1)?.["key"] ?? after;
    if (page.some(({ unused }) => unused === 1)) gone += await engine.write(() => removeUpTo(after, last));
    if (page.length < atOnce) return gone;
    after = last;
    // SQLite gives its answers in this same turn
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }

  function* removeUpTo(after: SqlValue, last: SqlValue): Work<number> {
    const rows = yield all(remove, after, last, ...values);
    yield* removed(rows);
    return rows.length;
  }
}

function* asked(text: string, ...values: SqlValue[]): Work<Row[]> {
  return yield all(text, ...values);
}

function* nothing(): Work<void> {}
