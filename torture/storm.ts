import { hasEnded } from "../src/model/states.ts";
import type { Testbed } from "./testbed.ts";
import { readAllRuns } from "./record.ts";
import { forEachConcurrently, retryWhileUnreachable, pause, countUpTo } from "./wait.ts";

/** A series of faults, one after the other, injected while other work continues. */
export interface Storm {
  readonly done: number;
  readonly total: number;
  over: Promise<void>;
}

export function startStorm(total: number, injectFault: () => Promise<void>, progress: (text: string) => void): Storm {
  let done = 0;
  const run = async (): Promise<void> => {
    while (done < total) {
      await injectFault();
      done += 1;
      if (done % 10 === 0) progress(`${done} of ${total} kills`);
    }
  };
  const finished = run();
  // The rejection is handled where `over` is awaited.
  finished.catch(() => undefined);
  return {
    get done() {
      return done;
    },
    total,
    over: finished,
  };
}

/** Submits runs in step with the storm and repeats each request until it is answered. Returns the acknowledged ids. */
export async function submitDuring(
  { client }: Testbed,
  runs: number,
  storm: Storm,
  parameters: Record<string, unknown> = {},
): Promise<string[]> {
  const submitted: string[] = [];
  await forEachConcurrently(countUpTo(runs), 8, async (index) => {
    while (index / runs > (storm.done + 1) / storm.total) await pause(20);
    const run = await retryWhileUnreachable(() =>
      client.submit({ agent_name: "work", parameters, idempotency_key: `run ${index}` }),
    );
    submitted.push(run.run_id);
  });
  return submitted;
}

const stuckMs = 60_000;

/**
 * Waits until all runs have ended or nothing has progressed for a minute, since a backlog may take any time. Returns the
 * number of runs still open.
 */
export async function waitUntilNothingMoves({ client }: Testbed, done: () => number = () => 0): Promise<number> {
  let ended = -1;
  for (let startedAt = performance.now(); performance.now() - startedAt < stuckMs; await pause(500)) {
    const runs = await retryWhileUnreachable(() => readAllRuns(client));
    const count = runs.filter(({ status }) => hasEnded(status)).length;
    if (count === runs.length) return 0;
    if (count + done() > ended) startedAt = performance.now();
    ended = count + done();
  }
  return (await readAllRuns(client)).filter(({ status }) => !hasEnded(status)).length;
}
