import { interruptedEnd } from "../model/interrupted-end.ts";
import type { Execution } from "../model/store.ts";
import { killOrphans } from "../process/orphans.ts";
import { interruptedExecutions } from "../record/audit/interrupted.ts";
import type { SqliteStore } from "../record/open.ts";

/**
 * What a Drover that was itself killed could not do: ends what its commands left running, and writes
 * their end as interrupted, so that no run says "running" for ever.
 */
export async function sweepInterrupted(store: SqliteStore): Promise<void> {
  const interrupted = await interruptedExecs(store);
  if (interrupted.length > 0) await endInterrupted(store, interrupted);
}

/** Those of `exec`, whose one execution has the run's own id. The others have a coordinator that looks after them. */
async function interruptedExecs(store: SqliteStore): Promise<Execution[]> {
  return (await interruptedExecutions(store)).filter(({ run_id, start }) => run_id === start.execution_id);
}

async function endInterrupted(store: SqliteStore, interrupted: readonly Execution[]): Promise<void> {
  await killOrphans(interrupted.map(({ start }) => start.execution_id));
  for (const execution of interrupted) await finishInterrupted(store, execution);
}

async function finishInterrupted(store: SqliteStore, { run_id, attempt, start }: Execution): Promise<void> {
  const at = new Date().toISOString();
  const [known] = await store.apply([{ op: "append_events", run_id, attempt, events: [] }]);
  const message = `The Drover that ran this (process ${start.owner.pid} on ${start.owner.host}) died before it ended.`;
  // a conflict is another sweep that was quicker: its end is as good
  await store.apply([
    {
      op: "finish_run",
      run_id,
      attempt,
      at,
      events: [
        {
          n: known.last_n + 1,
          at,
          event: { type: "execution_ended", execution: interruptedEnd(start.execution_id, at, message) },
        },
      ],
      result: {
        type: "result",
        status: "failed",
        reason: "runner_lost",
        error: message,
        exit_code: null,
        result_text: null,
        result_data: null,
      },
      isolation: null,
    },
  ]);
}
