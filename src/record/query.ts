/** A column value, in either engine. Booleans are 1 or 0. */
export type SqlValue = string | number | bigint | Uint8Array | null;
export type Row = Record<string, SqlValue>;

/**
 * One statement in SQL that both engines understand, with `?` or `?1` for values. SQL for a single engine lives in
 * that engine's directory.
 */
export interface Query {
  text: string;
  values: readonly SqlValue[];
  /** Rows to return. With `none` nobody reads the result, so PostgreSQL does not wait for it. */
  returns: "all" | "first" | "none";
}

/**
 * Database work as a sequence of statements: `const [row] = yield first(text, ...values)`. This way the logic is written
 * once: SQLite runs it synchronously, PostgreSQL over its connection. A failed statement aborts the whole work; the
 * generator neither resumes nor sees the error.
 */
export type Work<T> = Generator<Query, T, Row[]>;

export function all(text: string, ...values: SqlValue[]): Query {
  return { text, values, returns: "all" };
}

/** Returns at most one row. */
export function first(text: string, ...values: SqlValue[]): Query {
  return { text, values, returns: "first" };
}

export function write(text: string, ...values: SqlValue[]): Query {
  return { text, values, returns: "none" };
}
