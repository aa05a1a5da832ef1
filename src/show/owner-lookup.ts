import type { Reads } from "../model/store.ts";

/** Returns the owner of a run, or null if there is no such run. Owners never change, so they are cached. */
export type OwnerLookup = (run_id: string) => Promise<string | null>;

const maxCachedOwners = 10_000;

export function createOwnerLookup(read: Pick<Reads, "run_row">): OwnerLookup {
  const cache = new Map<string, string>();
  return async (run_id) => {
    const owner = cache.get(run_id);
    if (owner !== undefined) return owner;
    const run = await read.run_row(run_id);
    if (run === null) return null;
    if (cache.size >= maxCachedOwners) cache.delete(cache.keys().next().value!);
    cache.set(run_id, run.created_by);
    return run.created_by;
  };
}
