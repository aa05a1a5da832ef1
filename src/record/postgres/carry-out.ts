import type { Work } from "../query.ts";
import type { Client } from "./client.ts";

/**
 * Several works of one transaction, waiting for each other's answers and not one after the other. It ends when all of
 * them have: one that went on behind a rollback would write outside of any transaction. Throws the first fault.
 */
export async function sideBySide<const T extends readonly Promise<unknown>[]>(
  works: T,
): Promise<{ [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(works);
  return Promise.all(works);
}

export async function carryOut<T>(client: Client, work: Work<T>): Promise<T> {
  let step = work.next();
  while (!step.done) step = work.next(await client.query(step.value));
  return step.value;
}
