import { BugError } from "../../model/errors.ts";
import { first, write } from "../query.ts";
import type { Connection } from "./connection.ts";

/** A transaction that holds the write lock. */
export interface WriteTurn {
  /** Number of this commit in the whole record. */
  no: number;
  /** The database's clock, the only one that all coordinators share. */
  now: Date;
}

/** How many commits keep their mark: several minutes of a busy fleet. */
const ringSize = 65_536;
const begin = "begin isolation level read committed";
const takeTurn = `
  with taken as (update store set commits = commits + 1 returning commits)
  insert into turns (slot, no, mark) select (commits % ${ringSize})::integer, commits, ? from taken
  on conflict (slot) do update set no = excluded.no, mark = excluded.mark
  returning no, floor(extract(epoch from clock_timestamp()) * 1000) as now`;
const selectTurn = `select no, mark from turns where slot = (?::bigint % ${ringSize})::integer`;
const notify = `select pg_notify('drover', ?)`;

/**
 * Begins a transaction with the write lock. One transaction writes at a time, across all coordinators: updating the single
 * row of `store` takes the lock. This gives the same guarantees as on SQLite, and commit order equals cursor order. Many
 * operations share a transaction, so waiting for the lock is cheap; see ./group-commit.ts. `mark` identifies the commit
 * later, if it happens.
 */
export async function lockForWriting(connection: Connection, mark = ""): Promise<WriteTurn> {
  const [, [row]] = await Promise.all([connection.exec(begin), connection.query(first(takeTurn, mark))]);
  if (row === undefined) throw new BugError("the store table has lost its only row");
  return { no: Number(row["no"]), now: new Date(Number(row["now"])) };
}

/** The commit is sent right after the writes: if one of them failed, the commit becomes a rollback. */
export async function commit(connection: Connection, notice?: string): Promise<void> {
  if (notice !== undefined) await connection.query(write(notify, notice));
  const committing = connection.exec("commit");
  // An earlier error is the cause, so report that one first.
  committing.catch(() => undefined);
  await connection.flush();
  await committing;
}

/** Whether the commit with this number has this mark. Call it under the lock: by then the commit has happened or never will. */
export async function wasCommitted(connection: Connection, no: number, mark: string): Promise<boolean> {
  const [row] = await connection.query(first(selectTurn, no));
  if (row === undefined || Number(row["no"]) < no) return false;
  if (Number(row["no"]) === no) return row["mark"] === mark;
  throw new Error("timeout: too many commits have happened since to tell whether this one succeeded");
}
