/** What a column can hold, in either engine. Truth is 1 or 0. */
export type SqlValue = string | number | bigint | Uint8Array | null;
export type Row = Record<string, SqlValue>;

/**
 * One statement, in the SQL that both engines understand; `?` and `?1` stand for values. What only one of them
 * knows is in that engine's own folder.
 */
export interface Query {
  text: string;
  values: readonly SqlValue[];
  /** `none`: nobody looks at what it gives, so nobody waits for it either. */
  gives: "all" | "first" | "none";
}

/**
 * Something to be done in the database, statement by statement: `const [row] = yield first(text, ...values)`.
 * SQLite carries it out in one go, PostgreSQL over its connection. The logic is written once. A statement that
 * fails ends all of it: nothing of the work is told, nothing of it goes on.
 */
export type Work<T> = Generator<Query, T, Row[]>;

export function all(text: string, ...values: SqlValue[]): Query {
  return { text, values, gives: "all" };
}

/** At most one row is wanted. */
export function first(text: string, ...values: SqlValue[]): Query {
  return { text, values, gives: "first" };
}

export function write(text: string, ...values: SqlValue[]): Query {
  return { text, values, gives: "none" };
}
