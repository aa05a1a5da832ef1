import type { Work } from "../query.ts";
import type { Connection } from "./connection.ts";

/**
 * Waits for several works of one transaction that run concurrently. It returns only when all of them have settled: one that
 * continued after a rollback would write outside of any transaction. Throws the first error.
 */
export async function allSettled<const T extends readonly Promise<unknown>[]>(
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
