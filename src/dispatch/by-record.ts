import { BugError } from "../model/errors.ts";
import type { Store } from "../model/store.ts";
import type { StopReason } from "../model/states.ts";

/** Runs per transaction. All other writers wait for it. */
const stoppedAtOnce = 50;
/** Stops runs through the record, where whichever process holds them sees the order. */
export async function stopRuns(
  store: Pick<Store, "apply">,
  run_ids: readonly string[],
  by: string,
  reason: StopReason = "user",
): Promise<{ cancelled: string[]; stopping: string[]; untouched: string[] }> {
  const all = { cancelled: [] as string[], stopping: [] as string[], untouched: [] as string[] };
  for (let from = 0; from < run_ids.length; from += stoppedAtOnce) {
    const some = run_ids.slice(from, from + stoppedAtOnce);
    const [stopped] = await store.apply([{ op: "stop_runs", run_ids: some, reason, by }]);
    if (!stopped.ok) throw new BugError(`Runs could not be stopped: ${stopped.conflict}.`);
    all.cancelled.push(...stopped.cancelled);
    all.stopping.push(...stopped.stopping);
    all.untouched.push(...stopped.untouched);
  }
  return all;
}

/** Returns false if the runner does not exist. */
export async function drainRunner(store: Pick<Store, "apply">, runner_id: string, draining: boolean): Promise<boolean> {
  const [drained] = await store.apply([{ op: "drain_runner", runner_id, draining }]);
  return drained.ok;
}
