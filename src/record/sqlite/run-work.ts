import { monotonicMs } from "../../model/clock.ts";
import type { Query, Row, Work } from "../query.ts";
import type { Connection } from "./connection.ts";

/** Runs the work synchronously, so no other code in this process runs between its statements. */
export function runWork<T>(connection: Connection, work: Work<T>): T {
  let step = work.next();
  while (!step.done) step = work.next(runQuery(connection, step.value));
  return step.value;
}

/** How long to block the event loop at a time. */
const maxBlockMs = 8;

/**
 * Lets other code run between statements. Use it only for a connection that no other code uses, because its statements
 * could come in between.
 */
export async function runWorkYielding<T>(connection: Connection, work: Work<T>): Promise<T> {
  let since = monotonicMs();
  let step = work.next();
  while (!step.done) {
    if (monotonicMs() - since > maxBlockMs) {
      await new Promise((resolve) => setImmediate(resolve));
      since = monotonicMs();
    }
    step = work.next(runQuery(connection, step.value));
  }
  return step.value;
}

const noRows: Row[] = [];

function runQuery(connection: Connection, { text, values, returns }: Query): Row[] {
  const statement = connection.sql(text);
  if (returns === "all") return statement.all(...values);
  if (returns === "none") {
    statement.run(...values);
    return noRows;
  }
  const row = statement.get(...values);
  return row === undefined ? noRows : [row];
}
