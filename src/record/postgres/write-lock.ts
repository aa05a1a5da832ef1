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
  /** By which a transaction is found again whose commit was not answered. */
  xid: string;
  /** The database's clock: the only one all coordinators share. */
  now: Date;
}

const takeTurn = `
  update store set commits = commits + 1
  returning commits as no, pg_current_xact_id()::text as xid, floor(extract(epoch from clock_timestamp()) * 1000) as now`;
const tell = `select pg_notify('drover', ?)`;

export async function lockForWriting(client: Client): Promise<Turn> {
  const [, [row]] = await Promise.all([client.exec("begin"), client.query(first(takeTurn))]);
  if (row === undefined) throw new BugError("the record has lost the row that its schema gave it");
  return { no: Number(row["no"]), xid: String(row["xid"]), now: new Date(Number(row["now"])) };
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

/** What became of a transaction whose commit was sent and never answered. */
export async function committed(client: Client, xid: string): Promise<boolean> {
  for (;;) {
    const [row] = await client.exec(`select pg_xact_status(${client.quoted(xid)}::xid8) as status`);
    if (row?.["status"] !== "in progress") return row?.["status"] === "committed";
  }
}
