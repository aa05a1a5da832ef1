import type { Work } from "../query.ts";
import type { Connection } from "./connection.ts";

/**
 * Waits for concurrent work of one transaction. Throws the first error, but only when everything has settled: work that
 * continued after a rollback would write outside of any transaction.
 */
export async function waitForAll<const T extends readonly Promise<unknown>[]>(
  works: T,
): Promise<{ [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(works);
  return Promise.all(works);
}

export async function runWork<T>(connection: Connection, work: Work<T>): Promise<T> {
  let step = work.next();
  while (!step.done) step = work.next(await connection.query(step.value));
  return step.value;
}
