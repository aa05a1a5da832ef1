import type { Reads } from "../model/store.ts";

/** Whose a run is; null for a run that is not (or no longer) there. It never changes, so it is remembered. */
export type OwnerLookup = (run_id: string) => Promise<string | null>;

const remembered = 10_000;

export function createOwnerLookup(read: Pick<Reads, "run_row">): OwnerLookup {
  const known = new Map<string, string>();
  return async (run_id) => {
    const owner = known.get(run_id);
    if (owner !== undefined) return owner;
    const run = await read.run_row(run_id);
    if (run === null) return null;
    if (known.size >= remembered) known.delete(known.keys().next().value!);
    known.set(run_id, run.created_by);
    return run.created_by;
  };
}
