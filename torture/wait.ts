import { HostError } from "../src/model/errors.ts";
import { PortError } from "../src/model/port-error.ts";

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** Calls `ask` until it returns something other than null. Returns null on timeout. */
export async function waitFor<T>(ask: () => Promise<T | null>, withinMs: number, everyMs = 50): Promise<T | null> {
  for (const deadline = performance.now() + withinMs; ;) {
    const answer = await ask();
    if (answer !== null || performance.now() > deadline) return answer;
    await pause(everyMs);
  }
}

/** Repeats the call while the coordinator is unreachable. A refusal is final. */
export async function retryWhileUnreachable<T>(call: () => Promise<T>, withinMs = 120_000): Promise<T> {
  for (const deadline = performance.now() + withinMs; ;) {
    try {
      return await call();
    } catch (error) {
      const isAway = error instanceof HostError || (error instanceof PortError && error.conflict === "away");
      if (!isAway || performance.now() > deadline) throw error;
    }
    await pause(40);
  }
}

/** Runs the work for every item, `atOnce` at a time. */
export async function forEachConcurrently<T>(
  items: Iterable<T>,
  atOnce: number,
  work: (item: T) => Promise<void>,
): Promise<void> {
  const iterator = items[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = iterator.next(); !next.done; next = iterator.next()) await work(next.value);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}

export function* countUpTo(count: number): Generator<number> {
  for (let index = 0; index < count; index += 1) yield index;
}
