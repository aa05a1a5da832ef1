import type { RunRequest } from "../model/run-request.ts";
import type { CreateRun, Store } from "../model/store.ts";
import { prepareRun, type SubmitDeps, type Submitter, type SubmitResult, toSubmitResult } from "./submit.ts";

/** How long requests are checked before other callers get their turn. */
const maxBlockMs = 2;

/** A SQLite transaction blocks the process, for about 15 ms with this many runs. */
const maxRunsPerTransaction = 100;

export type SubmitMany = (requests: readonly RunRequest[], submitter: Submitter) => Promise<SubmitResult[]>;

/**
 * Submits many runs in few transactions. Each request is accepted or refused on its own. The results are in the order of
 * the requests. Other callers get their turn between two transactions, but the same caller's next batch waits until this
 * one is done.
 */
export function createSubmitMany(deps: SubmitDeps): SubmitMany {
  const lastBatches = new Map<string, Promise<unknown>>();
  return (requests, submitter) => {
    const { subject } = submitter;
    const result = (lastBatches.get(subject) ?? Promise.resolve()).then(() =>
      submitTogether(requests, submitter, deps),
    );
    const settled = result.then(forget, forget);
    lastBatches.set(subject, settled);
    return result;

    function forget(): void {
      if (lastBatches.get(subject) === settled) lastBatches.delete(subject);
    }
  };
}

async function submitTogether(
  requests: readonly RunRequest[],
  submitter: Submitter,
  deps: SubmitDeps,
): Promise<SubmitResult[]> {
  submitter.signal?.throwIfAborted();
  const results: SubmitResult[] = [];
  const creates = new Map<number, CreateRun>();
  const shared = { ...deps, ...rememberAgents(deps) };
  const pause = pauseAfterWork(deps.waitForTurn);
  for (const [index, request] of requests.entries()) {
    const prepared = await prepareRun(request, submitter, shared);
    if (prepared.ok) creates.set(index, prepared.create);
    else results[index] = prepared;
    await pause();
  }
  submitter.signal?.throwIfAborted();
  const validRuns = [...creates];
  for (let from = 0; from < validRuns.length; from += maxRunsPerTransaction) {
    const slice = validRuns.slice(from, from + maxRunsPerTransaction);
    const stored = await deps.store.apply(slice.map(([, create]) => create));
    for (const [sliceIndex, [index, create]] of slice.entries())
      results[index] = await toSubmitResult(create, stored[sliceIndex]!, deps);
    await deps.waitForTurn?.();
  }
  return results;
}

/** Returns a function that waits for a turn once the caller has worked for a while since its last one. */
export function pauseAfterWork(waitForTurn?: () => Promise<void>): () => Promise<void> {
  let turnStartedAt = performance.now();
  return async () => {
    if (performance.now() - turnStartedAt < maxBlockMs) return;
    await waitForTurn?.();
    turnStartedAt = performance.now();
  };
}

/** Finds each agent and its runner once, because most runs of a batch have the same agent. */
function rememberAgents({ agents, store }: SubmitDeps): Pick<SubmitDeps, "agents" | "store"> {
  const read: Store["read"] = { ...store.read, runner: lookUpOnce((runner_id) => store.read.runner(runner_id)) };
  return {
    agents: { names: lookUpOnce(() => agents.names()), find: lookUpOnce((name) => agents.find(name)) },
    store: { apply: store.apply, read },
  };
}

function lookUpOnce<T>(find: (name: string) => Promise<T>): (name?: string) => Promise<T> {
  const lookups = new Map<string, Promise<T>>();
  return (name = "") => {
    const lookup = lookups.get(name) ?? find(name);
    lookups.set(name, lookup);
    return lookup;
  };
}
