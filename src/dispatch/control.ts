import { BugError } from "../model/errors.ts";
import type { Store } from "../model/store.ts";
import type { StopReason } from "../model/states.ts";

/** The number of runs per transaction. It is low, because all other writers wait for the transaction. */
const maxRunsPerBatch = 50;

/** Stops runs by writing to the record. A coordinator passes the order on to the runners that hold the runs. */
export async function stopRuns(
  store: Pick<Store, "apply">,
  run_ids: readonly string[],
  by: string,
  reason: StopReason = "user",
): Promise<{ cancelled: string[]; stopping: string[]; untouched: string[] }> {
  const totals = { cancelled: [] as string[], stopping: [] as string[], untouched: [] as string[] };
  for (let from = 0; from < run_ids.length; from += maxRunsPerBatch) {
    const batch = run_ids.slice(from, from + maxRunsPerBatch);
    const [stopped] = await store.apply([{ op: "stop_runs", run_ids: batch, reason, by }]);
    if (!stopped.ok) throw new BugError(`Runs could not be stopped: ${stopped.conflict}.`);
    totals.cancelled.push(...stopped.cancelled);
    totals.stopping.push(...stopped.stopping);
    totals.untouched.push(...stopped.untouched);
  }
  return totals;
}

/** Returns false if the runner does not exist. */
export async function drainRunner(store: Pick<Store, "apply">, runner_id: string, draining: boolean): Promise<boolean> {
  const [drained] = await store.apply([{ op: "drain_runner", runner_id, draining }]);
  return drained.ok;
}
