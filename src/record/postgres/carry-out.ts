import type { Work } from "../query.ts";
import type { Client } from "./client.ts";

export async function carryOut<T>(client: Client, work: Work<T>): Promise<T> {
  let step = work.next();
  while (!step.done) step = work.next(await client.query(step.value));
  return step.value;
}
