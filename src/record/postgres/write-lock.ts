import { BugError } from "../../model/errors.ts";
import { first, write } from "../query.ts";
import type { Client } from "./client.ts";

/**
 * One transaction writes at a time, over all coordinators: whoever has the one row of `store` has the lock. What is
 * true on SQLite is true here for the same reason, and the order of commits is the order of cursors. Many operations
 * share a transaction, so that waiting for a turn is cheap; see ./group-commit.ts.
 */
export interface Turn {
  /** Counts the commits of the whole record. */
  no: number;
  /** The database's clock: the only one all coordinators share. */
  now: Date;
}

/** So many commits are known by who made them: some minutes of a busy fleet. */
const slots = 65_536;
const begin = "begin isolation level read committed";
const takeTurn = `
  with taken as (update store set commits = commits + 1 returning commits)
  insert into turns (slot, no, mark) select (commits % ${slots})::integer, commits, ? from taken
  on conflict (slot) do update set no = excluded.no, mark = excluded.mark
  returning no, floor(extract(epoch from clock_timestamp()) * 1000) as now`;
const selectTurn = `select no, mark from turns where slot = (?::bigint % ${slots})::integer`;
const tell = `select pg_notify('drover', ?)`;

/** `mark`: by which the commit is found again, if it happens. */
export async function lockForWriting(client: Client, mark = ""): Promise<Turn> {
  const [, [row]] = await Promise.all([client.exec(begin), client.query(first(takeTurn, mark))]);
  if (row === undefined) throw new BugError("the record has lost the row that its schema gave it");
  return { no: Number(row["no"]), now: new Date(Number(row["now"])) };
}

/** Sent behind what was written, without waiting for that: where something of it failed, this is no commit. */
export async function commit(client: Client, notice?: string): Promise<void> {
  if (notice !== undefined) await client.query(write(tell, notice));
  const committing = client.exec("commit");
  // What failed before it is the cause, and is told first.
  committing.catch(() => undefined);
  await client.settled();
  await committing;
}

/** Whether the commit with this number was the one with this mark. Asked under the lock: by then it has happened, or never will. */
export async function wasCommitted(client: Client, no: number, mark: string): Promise<boolean> {
  const [row] = await client.query(first(selectTurn, no));
  if (row === undefined || Number(row["no"]) < no) return false;
  if (Number(row["no"]) === no) return row["mark"] === mark;
  throw new Error("timeout: so many commits have been made since that one that nobody knows whose it was");
}
